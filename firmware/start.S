/* SPDX-License-Identifier: Apache-2.0 */
/* From the loader to main(), and what traps come to. */
	.section .text.start, "ax"
	.globl	_start
_start:
	.option push
	.option norelax
	la	gp, __global_pointer$
	.option pop
	la	sp, fw_stack_top
	la	t0, fw_trap
	csrw	mtvec, t0
	la	t0, fw_bss
	la	t1, fw_bss_end
1:	bgeu	t0, t1, 2f
	sw	zero, 0(t0)
	addi	t0, t0, 4
	j	1b
2:	li	t0, 0x800		/* mie.MEIE wakes WFI; mstatus.MIE stays off: no handler runs */
	csrw	mie, t0
	j	main

	/* Nothing here is meant to trap: say so and let the loader start the boot image. */
	.balign	4
fw_trap:
	la	sp, fw_stack_top
	csrr	a0, mcause
	csrr	a1, mepc
	csrr	a2, mtval
	j	fw_fault
