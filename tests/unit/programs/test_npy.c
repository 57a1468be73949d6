/* .npy files: written ones are read, other and damaged ones are refused with the reason. */
#include "kernel/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "support/tmpdir.h"

/* A file of version `major` around a header's text and data of `size` zeros. */
static char *make(unsigned char major, const char *header, size_t size, size_t *out_size)
{
    size_t length = strlen(header);
    size_t prefix = major == 1 ? 10 : 12;
    char *file = calloc(1, prefix + length + size + 1);
    assert_non_null(file);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (char)major;
    file[8] = (char)(length & 0xFF);
    file[9] = (char)(length >> 8);
    memcpy(file + prefix, header, length);
    *out_size = prefix + length + size;
    return file;
}

static void check_parse(unsigned char major, const char *header, size_t data, const char *why)
{
    kiln_diag diag = KILN_DIAG_INIT;
    npy_array array;
    size_t size = 0;
    char *file = make(major, header, data, &size);
    kiln_status status = npy_parse(file, size, "x.npy", &array, &diag);
    if (why == NULL) {
        assert_string_equal(diag.why, "");
        assert_int_equal(status, KILN_OK);
        assert_int_equal(array.size, data);
    } else {
        assert_int_equal(status, KILN_E_INVALID);
        assert_string_equal(diag.what, "x.npy");
        assert_non_null(strstr(diag.why, why));
        assert_null(array.data);
    }
    free(file);
}

static void good_files_are_read(void **state)
{
    check_parse(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", 48, NULL);
    check_parse(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n", 48, NULL);
    check_parse(3, "{\"shape\": (2,), 'fortran_order': False, 'descr': '|u1'}", 2, NULL);
    check_parse(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n", 8, NULL);
    check_parse(1, "{'descr': '<f2', 'fortran_order': False, 'shape': (0, 7), }\n", 0, NULL);
    check_parse(1, "{'descr': '<f4','fortran_order':False,'shape':(1,1,1,1,1,1,1,2)}", 8, NULL);
}

static void bad_files_are_refused(void **state)
{
    check_parse(4, "{}", 0, "version 4.0");
    check_parse(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", 4, "big-endian");
    check_parse(1, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", 8, "\"<c8\"");
    check_parse(1, "{'descr': '|f4', 'fortran_order': False, 'shape': (1,)}", 4, "\"|f4\"");
    check_parse(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4, "type");
    check_parse(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", 4, "Fortran");
    check_parse(1, "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", 4, "order");
    check_parse(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", 4, "shape");
    check_parse(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 4, "shape");
    check_parse(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2}", 8, "shape");
    check_parse(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 4,
                "8 dimensions");
    check_parse(1, "{'descr': '<f4', 'fortran_order': False}", 4, "descr, fortran_order, shape");
    check_parse(1, "{'descr': '<f4', 'descr': '<f4'}", 4, "twice");
    check_parse(1, "{'other': 1}", 4, "unknown");
    check_parse(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4, "dictionary");
    check_parse(1, "", 4, "dictionary");
    check_parse(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 7, "holds 7 bytes");
    check_parse(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 5, "holds 5 bytes");
    check_parse(1, "{'descr':'<f8','fortran_order':False,'shape':(4294967296,4294967296)}", 8,
                "larger than memory");
    check_parse(1, "{'descr':'<f8','fortran_order':False,'shape':(99999999999999999999,)}", 8,
                "shape");
}

static void every_cut_is_refused(void **state)
{
    size_t size = 0;
    char *file =
        make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", 16, &size);
    for (size_t cut = 0; cut < size; cut++) {
        kiln_diag diag = KILN_DIAG_INIT;
        npy_array array;
        char *copy = malloc(cut + 1); /* so that a sanitizer sees the end */
        assert_non_null(copy);
        memcpy(copy, file, cut);
        char *exact = realloc(copy, cut > 0 ? cut : 1);
        assert_non_null(exact);
        assert_int_equal(npy_parse(exact, cut, "cut", &array, &diag), KILN_E_INVALID);
        free(exact);
    }
    free(file);
}

static void what_is_written_is_read(void **state)
{
    char *path = kt_at(*state, "a.npy");
    for (unsigned type = 0; type < DATA_TYPE_COUNT; type++) {
        for (size_t rank = 0; rank <= NPY_MAX_RANK; rank++) {
            unsigned char data[8 * 256];
            npy_array array = {(data_type)type, rank, {0}, 1, 0, data, NULL};
            for (size_t i = 0; i < rank; i++) {
                array.shape[i] = i < 4 ? 4 : 1;
                array.count *= array.shape[i];
            }
            array.size = array.count * data_type_size(array.type);
            for (size_t i = 0; i < array.size; i++) {
                data[i] = (unsigned char)(i * 7 + type);
            }
            npy_array read;
            assert_int_equal(npy_write(path, &array, NULL), KILN_OK);
            assert_int_equal(npy_read(path, &read, NULL), KILN_OK);
            assert_int_equal(read.type, array.type);
            assert_int_equal(read.rank, rank);
            assert_memory_equal(read.shape, array.shape, sizeof(array.shape));
            assert_memory_equal(read.data, data, array.size);
            assert_int_equal(((const char *)read.data - read.owned) % 64, 0);
            npy_deinit(&read);
            /* The head alone, and of a file whose data is cut off. */
            for (int cut = 0; cut < 2; cut++) {
                assert_int_equal(npy_read_head(path, &read, NULL), KILN_OK);
                assert_int_equal(read.type, array.type);
                assert_int_equal(read.count, array.count);
                assert_memory_equal(read.shape, array.shape, sizeof(array.shape));
                assert_null(read.data);
                assert_int_equal(truncate(path, 128), 0);
            }
            assert_int_equal(truncate(path, 20), 0);
            assert_int_equal(npy_read_head(path, &read, NULL), KILN_E_INVALID);
        }
    }
}

static void files_that_are_none_are_refused(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    npy_array array;
    char *path = kt_at(*state, "none.npy");
    assert_int_equal(npy_read(path, &array, &diag), KILN_E_INVALID);
    assert_string_equal(diag.why, "no such file");
    assert_int_equal(npy_read(*state, &array, &diag), KILN_E_INVALID);
    assert_string_equal(diag.why, "is a directory");
    kt_file_write(path, "hello", 5);
    assert_int_equal(npy_read(path, &array, &diag), KILN_E_INVALID);
    assert_string_equal(diag.why, "is not a .npy file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files_are_read),        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(every_cut_is_refused),       kt_dir_test(what_is_written_is_read),
        kt_dir_test(files_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
