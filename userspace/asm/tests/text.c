// SPDX-License-Identifier: Apache-2.0
/* Images to text and back, bit for bit; broken text is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "neuron_asm.h"
#include "neuron_isa.h"

static uint64_t seed = 1;

static uint32_t any(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33);
}

static void *assemble(const char *text, size_t *size)
{
	struct neuron_asm_error error = { 0 };
	void *image = NULL;

	if (neuron_asm_parse(text, strlen(text), &image, size, &error))
		fail_msg("%u:%u: %s", error.line, error.column, error.text);
	return image;
}

/* Prints an instruction by way of an image that holds it, before a halt; the caller frees it. */
static char *through(const struct isa_inst *inst)
{
	char text[512] = ".program arch=3 version=1.2\n.engine vector\n.inst ";
	char *printed, *p = text + strlen(text);
	void *image, *again;
	size_t size, n;

	for (size_t i = 0; i < sizeof(*inst); i++)
		p += sprintf(p, "%02x", ((const uint8_t *)inst)[i]);
	strcpy(p, "\nhalt\n");
	image = assemble(text, &size);
	printed = neuron_asm_print(image, size);
	assert_non_null(printed);
	again = assemble(printed, &n);
	assert_int_equal(n, size);
	assert_memory_equal(again, image, size);
	free(again);
	free(image);
	return printed;
}

/* Every opcode that the header defines prints by a name. */
static void all_named(void **state)
{
	char line[256];
	unsigned int opcode, found = 0;
	int in_enum = 0;
	FILE *f = fopen(ISA_HEADER, "r");

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "enum isa_opcode", 15))
			in_enum = 1;
		else if (line[0] == '}')
			in_enum = 0;
		if (in_enum && sscanf(line, " ISA_%*[A-Z_] = 0x%x", &opcode) == 1) {
			const struct isa_inst inst = { .opcode = (uint8_t)opcode };
			char *text = through(&inst);

			if (!isa_opcode_name(opcode) || strstr(text, ".inst"))
				fail_msg("no text: %s", line);
			free(text);
			found++;
		}
	}
	fclose(f);
	assert_true(found > 0);
}

/* Each operand at its limits is text, the same as was read. */
static void limits(void **state)
{
	static const char *const lines[] = {
		"dma flags=accum|notify elem=255 queue=255 to_slot=65535@18446744073709551615/5,"
		"4294967295*-2147483648,1*1,1*1,1*1,4294967295*2147483647 from_slot=const@0/0",
		"dma flags=accum elem=4 sum=fp32 to_slot=1@0/1,4*4 from=sbuf[0+1*1]0@0/1,4*4",
		"dma to=psum[255+255*255]65535@1/0 from=sbuf[0+1*1]0@0/1,1*-1",
		"dma_gather flags=notify elem=255 queue=255 to=psum[255+255*255]65535@1/4,"
		"4294967295*-9223372036854775808,1*1,1*1,1*9223372036854775807 "
		"from_slot=const@18446744073709551615/0 "
		"index=sbuf:uint32[255+255]@4294967295/4294967295*-2147483648 order=free "
		"row_step=-9223372036854775808 rows=4294967295 oob=skip",
		"dma_scatter flags=accum sum=bf16 to_slot=65535@0/0 from=sbuf[0+1*1]0@0/1,1*-1 "
		"index=psum:fp64[0+1]@0/1*2147483647 row_step=9223372036854775807 rows=1",
		"tensor_scalar flags=rev0|rev1|vec0|vec1|imm type=bits op0=asr op1=is_le axes=255 "
		"dst=psum:bf16[255+255]@4294967295/4294967295*-2147483648,1*1,1*1,1*2147483647 "
		"imm0=0xffffffffffffffff imm1=0x1 vec0=sbuf:fp32[255]@4294967295 "
		"vec1=psum:int64[1]@1",
		"tensor_tensor src0=sbuf:uint8[1+1]@1/0*1,0*0,0*0,0*0 "
		"src1=psum:fp64[1+1]@1/0*1,0*0,0*0,0*0",
		"stream_shuffle type=bits src0=sbuf:uint8[1+1]@1/0*1,0*0,0*0,0*0 "
		"shuffle=255,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,"
		"27,"
		"28,29,30,31 imm0=0x1",
		"affine_select op0=is_ge src0=sbuf:uint8[1+1]@1/0*1,0*0,0*0,0*0 "
		"affine=-2147483648/p*2147483647,1,-1,0,-2147483648 imm0=0xff7fffff",
		"activation type=f64 func=mish",
		"copy dst=sbuf:fp32[0+1]@0/1*0,1*0,1*0,1*1 vec0=psum:fp32[1]@2+r255 "
		"shift=r1,r0,r255",
		"dma to_shift=r255 from_shift=r1 to=sbuf[0+1*1]0@0/0 from_slot=0@0/1,4*4",
		"reg_move flags=imm dst=r255 imm=-2147483648",
		"reg_alu op=asr dst=r63 a=r1 b=r62",
		"reg_load dst=r1 at_slot=const:int32@18446744073709551615+r63",
		"reg_load dst=r1 at_slot=65535:uint8@0",
		"reg_store a=r9 at=psum:bf16[127]0@4+r1 wait0=s1>=2+r255",
		"branch op=is_lt a=r1 b=r2 target=4294967295",
		"activation func=exp op1=add",
		"activation func=derf",
		"reduce flags=negate op0=abs_max axes=1",
		"exponential flags=accum|vec0|vec1 vec0=sbuf:fp32[1]@4 vec1=sbuf:bf16[1]@8",
		"load_stationary array_rows=at64x64 array_columns=at96x32 "
		"src0=sbuf:bf16[64+64]@0/1*0,1*0,1*0,32*1",
		"matmul array_rows=at32x32 array_columns=at0x64 "
		"dst=psum:bf16[0+64]@0/1*0,1*0,1*0,512*1",
		"matmul array_rows=3 array_columns=255",
		"copy mode=stochastic",
		"matmul mode=mx src0=sbuf:fp4_x4[0+32]@64/1*512,0*0,0*0,0*0 vec1=sbuf:uint8[36]@0",
		"load_stationary mode=mx src0=sbuf:fp4_x4[0+32]@64/1*2,0*0,0*0,0*0 "
		"vec1=sbuf:uint8[4]@0+r63 shift=r0,r2,r0",
		"copy mode=stochastic shift=r1,r2,r0",
		"matmul type=f64 mode=double_row src0=sbuf:fp8_e4[0+1]@1/1*1,0*0,0*0,0*0",
		"load_stationary mode=double_row src0=psum:fp8_e5[0+1]@1/1*1,0*0,0*0,0*0 "
		"vec0=sbuf:fp8_e3[1]@0",
		"halt wait0=s255>=4294967295 wait1=s0>=1 update0=s255+255 update1=s0+1 "
		"tag=4294967295",
	};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		size_t size;
		void *image;
		char *printed;

		snprintf(text, sizeof(text),
			 ".program arch=3 version=1.2\n.engine vector\n%s\nhalt\n", lines[i]);
		image = assemble(text, &size);
		printed = neuron_asm_print(image, size);
		assert_non_null(printed);
		if (!strstr(printed, lines[i]))
			fail_msg("%s\nis printed as\n%s", lines[i], printed);
		free(printed);
		free(image);
	}
}

/* Each byte of each opcode at its limits, and many at random. */
static void fields(void **state)
{
	struct isa_inst inst;

	(void)state;
	for (uint32_t opcode = 0; opcode <= UINT8_MAX; opcode++)
		for (size_t i = 1; i < sizeof(inst) && isa_opcode_name(opcode); i++)
			for (int value = 1; value < 512; value = value * 2 + (value == 127)) {
				memset(&inst, 0, sizeof(inst));
				inst.opcode = (uint8_t)opcode;
				((uint8_t *)&inst)[i] = (uint8_t)value;
				free(through(&inst));
			}
	for (int i = 0; i < 5000; i++) {
		for (size_t k = 0; k < sizeof(inst); k++)
			((uint8_t *)&inst)[k] = any() % 3 ? (uint8_t)any() : 0;
		free(through(&inst));
	}
}

static const char sample[] = ".program name=\"a \\x22b\" arch=3 version=1.2 ; a comment\n"
			     ".slot name=\"in0\" kind=input rights=read bytes=512 dtype=fp32 "
			     "ndim=1 dims=128,0,0,0,0\n"
			     ".engine vector\n"
			     "\ttensor_scalar flags=rev0|vec1 op0=add op1=mult "
			     "dst=sbuf:fp32[0+128]@0/1*0,1*0,1*0,512*-1 imm0=0x3f800000 "
			     "wait0=s3>=7 tag=9\n"
			     "\tdma elem=4 queue=1 to=sbuf[0+128*1]0@0/1,4*4 "
			     "from_slot=const@0/1,4*4 update0=s5+1\n"
			     "\thalt\n"
			     ".const 00112233\n";

static void whole(void **state)
{
	size_t size, n;
	void *image = assemble(sample, &size);
	char *text = neuron_asm_print(image, size);
	void *again = assemble(text, &n);

	(void)state;
	assert_null(strstr(text, ".inst"));
	assert_null(strstr(text, ".image"));
	assert_int_equal(n, size);
	assert_memory_equal(again, image, size);
	free(again);
	free(text);
	free(image);
}

/* Damaged text is assembled or refused with a place, and never more. */
static void fuzz(void **state)
{
	char text[sizeof(sample)];
	struct neuron_asm_error error;
	unsigned int refused = 0;
	void *image;
	size_t size;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		const size_t length = any() % 8 ? sizeof(text) - 1 : any() % sizeof(text);
		char *exact;

		memcpy(text, sample, sizeof(text));
		for (uint32_t k = any() % 4 + 1; k; k--)
			text[any() % (sizeof(text) - 1)] =
				any() % 2 ? (char)any() : sample[any() % (sizeof(text) - 1)];
		exact = malloc(length + !length); /* no byte behind it may be read */
		assert_non_null(exact);
		memcpy(exact, text, length);
		if (neuron_asm_parse(exact, length, &image, &size, &error)) {
			assert_true(error.line && error.column && error.text[0]);
			refused++;
		}
		free(image);
		free(exact);
	}
	assert_true(refused > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_named), cmocka_unit_test(limits), cmocka_unit_test(fields),
		cmocka_unit_test(whole),     cmocka_unit_test(fuzz),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
