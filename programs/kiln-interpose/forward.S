/* The one function of a library whose signature is not documented, KN_FORWARDED (see forward.h). It
 * jumps to the real function of that name, which then finds every argument register and the stack
 * as the caller left them. kn_forward_find looks for the real function at the first call; what a C
 * function may change of the registers is put back before the jump.
 *
 * x86-64 (System V psABI): the integer registers of arguments, rax (the number of vector registers
 * of a variadic call), r10 (the static chain), and every vector register at its whole width.
 * AArch64 (AAPCS64): x0 to x7, x8 (where a result goes), q0 to q7. A function with SVE arguments is
 * marked as one of another convention (STO_AARCH64_VARIANT_PCS); the libraries have none. */
        .text
        .hidden kn_forward_real
        .hidden kn_forward_find
        .globl KN_FORWARDED
        .type KN_FORWARDED, %function
        .p2align 4
KN_FORWARDED:
        .cfi_startproc
#if defined(__x86_64__) && defined(__LP64__)
        endbr64
        movq kn_forward_real(%rip), %r11
        testq %r11, %r11
        jz .Lfind
        jmp *%r11
.Lfind:
        pushq %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq %rsp, %rbp
        .cfi_def_cfa_register %rbp
        pushq %rbx
        .cfi_offset %rbx, -24
        pushq %rax
        pushq %r10
        pushq %rdi
        pushq %rsi
        pushq %rdx
        pushq %rcx
        pushq %r8
        pushq %r9
        subq $16, %rsp /* -88(%rbp): the components that are saved; 0: by fxsave */
        movq $0, -88(%rbp)
        movl $1, %eax
        cpuid
        btl $27, %ecx /* OSXSAVE */
        jnc .Lsave_sse
        xorl %ecx, %ecx
        xgetbv
        andl $0xee, %eax /* SSE, AVX, MPX's bounds, AVX-512 */
        movl %eax, -88(%rbp)
        movl $0xd, %eax
        xorl %ecx, %ecx
        cpuid
        subq %rbx, %rsp
        andq $-64, %rsp
        xorl %eax, %eax /* the header, of which xsave writes the first word alone */
        movq %rax, 512(%rsp)
        movq %rax, 520(%rsp)
        movq %rax, 528(%rsp)
        movq %rax, 536(%rsp)
        movq %rax, 544(%rsp)
        movq %rax, 552(%rsp)
        movq %rax, 560(%rsp)
        movq %rax, 568(%rsp)
        movl -88(%rbp), %eax
        xorl %edx, %edx
        xsave64 (%rsp)
        jmp .Lcall
.Lsave_sse:
        subq $512, %rsp
        andq $-64, %rsp
        fxsave64 (%rsp)
.Lcall:
        movq 8(%rbp), %rdi
        call kn_forward_find
        movq %rax, %r11
        movl -88(%rbp), %eax
        xorl %edx, %edx
        testl %eax, %eax
        jz .Lrestore_sse
        xrstor64 (%rsp)
        jmp .Lrestored
.Lrestore_sse:
        fxrstor64 (%rsp)
.Lrestored:
        leaq -72(%rbp), %rsp
        popq %r9
        popq %r8
        popq %rcx
        popq %rdx
        popq %rsi
        popq %rdi
        popq %r10
        popq %rax
        popq %rbx
        .cfi_restore %rbx
        popq %rbp
        .cfi_restore %rbp
        .cfi_def_cfa %rsp, 8
        jmp *%r11
#elif defined(__aarch64__) && defined(__LP64__)
        hint #34 /* bti c */
        adrp x16, kn_forward_real
        add x16, x16, #:lo12:kn_forward_real
        ldar x16, [x16]
        cbz x16, .Lfind
        br x16
.Lfind:
        stp x29, x30, [sp, #-224]!
        .cfi_def_cfa_offset 224
        .cfi_offset x29, -224
        .cfi_offset x30, -216
        mov x29, sp
        stp x0, x1, [sp, #16]
        stp x2, x3, [sp, #32]
        stp x4, x5, [sp, #48]
        stp x6, x7, [sp, #64]
        str x8, [sp, #80]
        stp q0, q1, [sp, #96]
        stp q2, q3, [sp, #128]
        stp q4, q5, [sp, #160]
        stp q6, q7, [sp, #192]
        mov x0, x30
        bl kn_forward_find
        mov x16, x0 /* a jump by x16 may land on "bti c" */
        ldp q6, q7, [sp, #192]
        ldp q4, q5, [sp, #160]
        ldp q2, q3, [sp, #128]
        ldp q0, q1, [sp, #96]
        ldr x8, [sp, #80]
        ldp x6, x7, [sp, #64]
        ldp x4, x5, [sp, #48]
        ldp x2, x3, [sp, #32]
        ldp x0, x1, [sp, #16]
        ldp x29, x30, [sp], #224
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        br x16
#else
#error "kiln does not stand in front of a library with such functions here: see CMakeLists.txt"
#endif
        .cfi_endproc
        .size KN_FORWARDED, . - KN_FORWARDED

/* Every way in is marked for CET (IBT, SHSTK) and for BTI. */
#if defined(__x86_64__)
#define FEATURES 0xc0000002 /* GNU_PROPERTY_X86_FEATURE_1_AND */
#define MARKED 3
#else
#define FEATURES 0xc0000000 /* GNU_PROPERTY_AARCH64_FEATURE_1_AND */
#define MARKED 1
#endif
        .section .note.gnu.property, "a", %note
        .p2align 3
        .long 4
        .long 16
        .long 5 /* NT_GNU_PROPERTY_TYPE_0 */
        .asciz "GNU"
        .long FEATURES
        .long 4
        .long MARKED
        .long 0
        .section .note.GNU-stack, "", %progbits
