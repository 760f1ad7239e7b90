// SPDX-License-Identifier: Apache-2.0
/*
 * fw-pack: makes a firmware image (neuron_fw_image.h) of a linked program, and the same as a C array
 * for the model.
 */
#include <argp.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neuron_fw_image.h"

struct options {
	const char *elf, *out, *array, *name;
	uint32_t arch, version;
};

static const struct argp_option option_table[] = {
	{ "arch", 'a', "N", 0, "generation of the chip, 2 to 4 (required)", 0 },
	{ "version", 'v', "X.Y.Z", 0, "version of the firmware (required)", 0 },
	{ "output", 'o', "FILE", 0, "the image (required)", 0 },
	{ "array", 'c', "FILE", 0, "the image as a C array in a source file", 0 },
	{ "name", 'n', "NAME", 0, "name of that array", 0 },
	{ 0 },
};

static uint32_t version(struct argp_state *state, const char *text)
{
	unsigned int major, minor, patch;
	char rest;

	if (sscanf(text, "%u.%u.%u%c", &major, &minor, &patch, &rest) != 3 || major > 255 ||
	    minor > 255 || patch > 65535)
		argp_error(state, "version '%s': want X.Y.Z, up to 255.255.65535", text);
	return FWI_VERSION(major, minor, patch);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'a':
		o->arch = (uint32_t)strtoul(arg, NULL, 0);
		break;
	case 'v':
		o->version = version(state, arg);
		break;
	case 'o':
		o->out = arg;
		break;
	case 'c':
		o->array = arg;
		break;
	case 'n':
		o->name = arg;
		break;
	case ARGP_KEY_ARG:
		if (o->elf)
			argp_error(state, "unexpected argument '%s'", arg);
		o->elf = arg;
		break;
	case ARGP_KEY_END:
		if (!o->elf || !o->out || !o->version || o->arch < 2 || o->arch > 4)
			argp_error(state, "want ELF, --arch of 2 to 4, --version and --output");
		if (!o->array != !o->name)
			argp_error(state, "--array and --name go together");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int fail(const char *file, const char *what)
{
	fprintf(stderr, "fw-pack: %s: %s\n", file, what);
	return 1;
}

static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	long end = -1;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END))
		end = ftell(f);
	if (end >= 0)
		data = malloc((size_t)end + 1);
	if (data && (fseek(f, 0, SEEK_SET) || fread(data, 1, (size_t)end, f) != (size_t)end)) {
		free(data);
		data = NULL;
	}
	fclose(f);
	*size = (size_t)end;
	return data;
}

/* The one segment to load, NULL when it is not an executable with just that. */
static const Elf32_Phdr *segment(const uint8_t *elf, size_t size)
{
	const Elf32_Ehdr *eh = (const Elf32_Ehdr *)elf;
	const Elf32_Phdr *found = NULL;

	if (size < sizeof(*eh) || memcmp(eh->e_ident, ELFMAG, SELFMAG) ||
	    eh->e_ident[EI_CLASS] != ELFCLASS32 || eh->e_machine != EM_RISCV ||
	    eh->e_phentsize != sizeof(*found) || eh->e_phoff % 4 || eh->e_phoff > size ||
	    (size - eh->e_phoff) / sizeof(*found) < eh->e_phnum)
		return NULL;
	for (unsigned int i = 0; i < eh->e_phnum; i++) {
		const Elf32_Phdr *ph = (const Elf32_Phdr *)(elf + eh->e_phoff) + i;

		if (ph->p_type != PT_LOAD)
			continue;
		if (found || ph->p_offset > size || ph->p_filesz > size - ph->p_offset)
			return NULL;
		found = ph;
	}
	return found;
}

static int write_array(const struct options *o, const uint8_t *image, size_t size)
{
	FILE *f = fopen(o->array, "w");
	bool bad;

	if (!f)
		return fail(o->array, strerror(errno));
	fprintf(f,
		"/* Made by fw-pack. */\n#include <stddef.h>\n\n"
		"extern const unsigned char %s[];\nextern const size_t %s_bytes;\n\n"
		"_Alignas(8) const unsigned char %s[] = {",
		o->name, o->name, o->name);
	for (size_t i = 0; i < size; i++)
		fprintf(f, "%s0x%02x,", i % 12 ? " " : "\n\t", image[i]);
	fprintf(f, "\n};\nconst size_t %s_bytes = sizeof(%s);\n", o->name, o->name);
	bad = ferror(f);
	if (fclose(f) || bad)
		return fail(o->array, "can't write");
	return 0;
}

static int write_image(const char *path, const uint8_t *image, size_t size)
{
	FILE *f = fopen(path, "wb");
	bool bad;

	if (!f)
		return fail(path, strerror(errno));
	bad = fwrite(image, 1, size, f) != size;
	if (fclose(f) || bad)
		return fail(path, "can't write");
	return 0;
}

static int pack(const struct options *o, const uint8_t *elf, size_t elf_size)
{
	const Elf32_Phdr *ph = segment(elf, elf_size);
	struct fwi_finding found;
	struct fw_image h = { 0 };
	enum fwi_verdict verdict;
	uint8_t *image;
	size_t bytes, size;
	int ret;

	if (!ph)
		return fail(o->elf, "no RV32 executable with one segment to load");
	bytes = (ph->p_filesz + 3u) & ~3u;
	size = sizeof(h) + bytes;
	image = calloc(1, size);
	if (!image)
		return fail(o->elf, strerror(ENOMEM));
	h.magic = FWI_MAGIC;
	h.format = FWI_FORMAT;
	h.version = o->version;
	h.arch = o->arch;
	h.load = ph->p_vaddr;
	h.entry = ((const Elf32_Ehdr *)elf)->e_entry;
	h.bytes = (uint32_t)bytes;
	h.memory = ph->p_memsz < bytes ? (uint32_t)bytes : ph->p_memsz;
	memcpy(image, &h, sizeof(h));
	memcpy(image + sizeof(h), elf + ph->p_offset, ph->p_filesz);
	h.crc = fwi_crc(image, size);
	memcpy(image, &h, sizeof(h));

	verdict = fwi_check(&h, size, h.crc, o->arch, &found);
	if (verdict == FWI_OK) {
		ret = write_image(o->out, image, size);
		if (!ret && o->array)
			ret = write_array(o, image, size);
	} else {
		fprintf(stderr, "fw-pack: %s: %s 0x%x, want 0x%x\n", o->elf,
			fwi_verdict_text(verdict), found.value, found.want);
		ret = 1;
	}
	free(image);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		option_table, parse, "ELF", "Makes a firmware image of a linked program.",
		NULL,	      NULL,  NULL
	};
	struct options o = { 0 };
	uint8_t *elf;
	size_t size;
	int ret;

	argp_parse(&argp, argc, argv, 0, NULL, &o);
	elf = read_file(o.elf, &size);
	if (!elf)
		return fail(o.elf, "can't read");
	ret = pack(&o, elf, size);
	free(elf);
	return ret;
}
