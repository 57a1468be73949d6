/* Rotary embedding in place: x[token][head] holds dim values; the pair (i, i + dim/2) is turned by
 * (first + token) * base^(-2i/dim). One item a (pair, head, token). */
__kernel void rotary(__global float *x, int first, float base)
{
    size_t pair = get_global_id(0);
    size_t half_dim = get_global_size(0);
    size_t row = get_global_id(2) * get_global_size(1) + get_global_id(1);
    __global float *head = x + row * 2 * half_dim;
    float frequency = pow(base, -(float)pair / (float)half_dim);
    float angle = (float)(first + (int)get_global_id(2)) * frequency;
    float c = cos(angle);
    float s = sin(angle);
    float a = head[pair];
    float b = head[pair + half_dim];
    head[pair] = a * c - b * s;
    head[pair + half_dim] = a * s + b * c;
}
