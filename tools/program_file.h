/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files, for tools that turn a program into another form. */
#ifndef PROGRAM_FILE_H
#define PROGRAM_FILE_H

#include <stddef.h>

/*
 * All of the file, or of standard input if path is "-"; the caller frees it. Ends the program with exit
 * status 1, having said why, if it cannot be read; tool is the name to say.
 */
void *program_file_read(const char *tool, const char *path, size_t *size);

/* Writes the file, or standard output if path is "-". 0; or 1, having said why. */
int program_file_write(const char *tool, const char *path, const void *data, size_t size);

#endif /* PROGRAM_FILE_H */
