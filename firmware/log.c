// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>

#include "firmware.h"

static void put(char c)
{
	reg_write(MGMT_LOG, (__u8)c);
}

/* At least as many digits as said. */
static void put_digits(__u32 value, int least)
{
	int shift = 28;

	while (shift >= least * 4 && !(value >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		put("0123456789abcdef"[value >> shift & 15]);
}

static void put_hex(__u32 high, __u32 low)
{
	put('0');
	put('x');
	if (high)
		put_digits(high, 1);
	put_digits(low, high ? 8 : 1);
}

static void put_decimal(__u32 value)
{
	char digits[10];
	int n = 0;

	do {
		digits[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (n)
		put(digits[--n]);
}

static void put_all(const char *format, va_list args)
{
	__u64 wide;

	for (; *format; format++) {
		if (*format != '%') {
			put(*format);
			continue;
		}
		switch (*++format) {
		case 'u':
			put_decimal(va_arg(args, __u32));
			break;
		case 'x':
			put_hex(0, va_arg(args, __u32));
			break;
		case 'X':
			wide = va_arg(args, __u64);
			put_hex((__u32)(wide >> 32), (__u32)wide);
			break;
		default:
			return;
		}
	}
}

void log_info(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_all(format, args);
	va_end(args);
	reg_write(MGMT_LOG_END, MGMT_LOG_INFO);
}

void log_guest(unsigned int kind, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_all(format, args);
	va_end(args);
	reg_write(MGMT_LOG_END, kind);
}
