// Messages: find the method, put every argument back, jump to it.
// System V x86-64: six integer and eight float arguments in registers, the
// rest, and structs such as MTL::Size, stay on the stack untouched.

.macro send name self selector
.globl \name
.type \name, @function
\name:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  subq $192, %rsp
  movq %rdi, -8(%rbp)
  movq %rsi, -16(%rbp)
  movq %rdx, -24(%rbp)
  movq %rcx, -32(%rbp)
  movq %r8, -40(%rbp)
  movq %r9, -48(%rbp)
  movq %rax, -56(%rbp)
  movaps %xmm0, -192(%rbp)
  movaps %xmm1, -176(%rbp)
  movaps %xmm2, -160(%rbp)
  movaps %xmm3, -144(%rbp)
  movaps %xmm4, -128(%rbp)
  movaps %xmm5, -112(%rbp)
  movaps %xmm6, -96(%rbp)
  movaps %xmm7, -80(%rbp)
  movq \self, %rax
  movq \selector, %rsi
  movq %rax, %rdi
  call fake_find_method
  movq %rax, %r11
  movq -8(%rbp), %rdi
  movq -16(%rbp), %rsi
  movq -24(%rbp), %rdx
  movq -32(%rbp), %rcx
  movq -40(%rbp), %r8
  movq -48(%rbp), %r9
  movq -56(%rbp), %rax
  movaps -192(%rbp), %xmm0
  movaps -176(%rbp), %xmm1
  movaps -160(%rbp), %xmm2
  movaps -144(%rbp), %xmm3
  movaps -128(%rbp), %xmm4
  movaps -112(%rbp), %xmm5
  movaps -96(%rbp), %xmm6
  movaps -80(%rbp), %xmm7
  leave
  .cfi_def_cfa %rsp, 8
  jmp *%r11
  .cfi_endproc
.size \name, .-\name
.endm

.text
send objc_msgSend, %rdi, %rsi
send objc_msgSend_fpret, %rdi, %rsi
// A large struct comes back through a hidden first argument.
send objc_msgSend_stret, %rsi, %rdx

.section .note.GNU-stack, "", @progbits
