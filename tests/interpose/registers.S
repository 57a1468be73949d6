/* See registers.h. With RECORDER, a function of that name which writes all registers and the words of
 * the stack to the address in its first argument, and returns 0x5151; else call_with_registers. */
#ifdef RECORDER
#define NAME RECORDER
#else
#define NAME call_with_registers
#endif
        .text
        .globl NAME
        .type NAME, %function
        .p2align 4
NAME:
        .cfi_startproc
#if defined(__x86_64__)
        endbr64
#ifdef RECORDER
        movq %rdi, 0(%rdi)
        movq %rsi, 8(%rdi)
        movq %rdx, 16(%rdi)
        movq %rcx, 24(%rdi)
        movq %r8, 32(%rdi)
        movq %r9, 40(%rdi)
        movq %rax, 48(%rdi)
        movq %r10, 56(%rdi)
        .irp at, 0, 8, 16, 24, 32, 40, 48, 56
        movq 8+\at(%rsp), %r11
        movq %r11, 128+\at(%rdi)
        .endr
        cmpq $32, 704(%rdi)
        je 2f
        ja 3f
        .irp at, 0, 1, 2, 3, 4, 5, 6, 7
        movups %xmm\at, 192+64*\at(%rdi)
        .endr
        jmp 4f
2:
        .irp at, 0, 1, 2, 3, 4, 5, 6, 7
        vmovups %ymm\at, 192+64*\at(%rdi)
        .endr
        jmp 4f
3:
        .irp at, 0, 1, 2, 3, 4, 5, 6, 7
        vmovups %zmm\at, 192+64*\at(%rdi)
        .endr
4:
        movl $0x5151, %eax
        ret
#else
        pushq %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq %rsp, %rbp
        .cfi_def_cfa_register %rbp
        movq %rdi, %r11
        movq %rsi, %rax
        .irp at, 56, 48, 40, 32, 24, 16, 8, 0
        pushq 128+\at(%rax)
        .endr
        cmpq $32, 704(%rax)
        je 2f
        ja 3f
        .irp at, 0, 1, 2, 3, 4, 5, 6, 7
        movups 192+64*\at(%rax), %xmm\at
        .endr
        jmp 4f
2:
        .irp at, 0, 1, 2, 3, 4, 5, 6, 7
        vmovups 192+64*\at(%rax), %ymm\at
        .endr
        jmp 4f
3:
        .irp at, 0, 1, 2, 3, 4, 5, 6, 7
        vmovups 192+64*\at(%rax), %zmm\at
        .endr
4:
        movq 0(%rax), %rdi
        movq 8(%rax), %rsi
        movq 16(%rax), %rdx
        movq 24(%rax), %rcx
        movq 32(%rax), %r8
        movq 40(%rax), %r9
        movq 56(%rax), %r10
        movq 48(%rax), %rax
        call *%r11
        leave
        .cfi_def_cfa %rsp, 8
        ret
#endif
#elif defined(__aarch64__)
        hint #34 /* bti c */
#ifdef RECORDER
        stp x0, x1, [x0, #0]
        stp x2, x3, [x0, #16]
        stp x4, x5, [x0, #32]
        stp x6, x7, [x0, #48]
        str x8, [x0, #64]
        .irp at, 0, 8, 16, 24, 32, 40, 48, 56
        ldr x16, [sp, #\at]
        str x16, [x0, #128+\at]
        .endr
        .irp at, 0, 1, 2, 3, 4, 5, 6, 7
        str q\at, [x0, #192+64*\at]
        .endr
        mov x0, #0x5151
        ret
#else
        stp x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov x29, sp
        .cfi_def_cfa_register x29
        mov x16, x0
        mov x17, x1
        sub sp, sp, #64
        .irp at, 0, 8, 16, 24, 32, 40, 48, 56
        ldr x2, [x17, #128+\at]
        str x2, [sp, #\at]
        .endr
        .irp at, 0, 1, 2, 3, 4, 5, 6, 7
        ldr q\at, [x17, #192+64*\at]
        .endr
        ldp x0, x1, [x17, #0]
        ldp x2, x3, [x17, #16]
        ldp x4, x5, [x17, #32]
        ldp x6, x7, [x17, #48]
        ldr x8, [x17, #64]
        blr x16
        mov sp, x29
        .cfi_def_cfa_register sp
        ldp x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        ret
#endif
#endif
        .cfi_endproc
        .size NAME, . - NAME
        .section .note.GNU-stack, "", %progbits
