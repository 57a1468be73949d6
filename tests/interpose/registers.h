/* Every register in which a function finds arguments, as registers.S loads and records them. */
#ifndef KILN_TESTS_INTERPOSE_REGISTERS_H
#define KILN_TESTS_INTERPOSE_REGISTERS_H

#include <stdalign.h>
#include <stdint.h>

/* registers.S knows the offsets: 0, 128, 192, 704. */
typedef struct registers {
    alignas(64) uint64_t words[16]; /* rdi, rsi, rdx, rcx, r8, r9, rax, r10; or x0 to x8 */
    uint64_t stack[8];
    unsigned char vectors[8][64];
    uint64_t width; /* bytes of a vector register: 16, 32 or 64 */
} registers;

/* Calls `function` with all of `in`; what it returned. words[0] is the address of a `registers`
 * that a recorder fills. */
uint64_t call_with_registers(void (*function)(void), const registers *in);

#endif
