/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Mailbox of the management firmware: registers in MISC RAM, requests and responses in memory.
 * Source: aws-neuron-driver neuron_fw_io.h, neuron_fw_io.c, neuron_reset.c, neuron_sysfs_metrics.c,
 * v3/neuron_dhal_v3.c, v3/neuron_pelect.c, v4/neuron_dhal_v4.c.
 *
 * A request and its response lie in host memory (device addresses). The driver writes the request,
 * clears the response's sequence, writes both base addresses and the trigger; the firmware answers
 * with the sequence written last.
 *
 * Firmware of a newer API version (V3_MBOX_REGISTERS_API, V4_MBOX_REGISTERS_API) also takes requests
 * in MISC RAM itself. The driver writes the payload to MBOX_DATA, the two words of the header to
 * MBOX_REQUEST_HI and MBOX_REQUEST_LO, zero to MBOX_RESPONSE_*, then 1 to MBOX_ACK and to the trigger.
 * The firmware answers in the same places, with a struct mbox_register_response, and clears the
 * trigger. Execution interface: MBOX_ACK tells the two ways apart and is cleared with the trigger; a
 * request that is damaged is answered with a header of zero.
 */
#ifndef NEURON_MAILBOX_H
#define NEURON_MAILBOX_H

#include "neuron_types.h"

/* Registers: byte offsets in MISC RAM. */
#define MBOX_API_VERSION       0x000
/* Of V4: components that are not well, 0: all are; and a count that goes on as long as firmware runs. */
#define MBOX_HEALTH            0x004
#define   MBOX_HEALTH_HBM        0x00000008u
#define   MBOX_HEALTH_SRAM       0x00000040u
#define   MBOX_HEALTH_BITS       0x00001ff8u /* mbox_health_text() */
#define MBOX_HEALTH_SEQUENCE   0x00c
#define   MBOX_HEALTH_HEARTBEAT  0x000ff000u
#define MBOX_DEVICE_ID         0x024
#define MBOX_SERIAL_LO         0x038
#define MBOX_SERIAL_HI         0x03c
#define MBOX_ECC_SRAM          0x040
#define MBOX_ECC_HBM(n)        (0x044 + (n) * 4) /* n = 0..3 */
#define   MBOX_ECC_CORRECTED     0xffff0000u
#define   MBOX_ECC_UNCORRECTED   0x0000ffffu /* SRAM; HBM below MBOX_API_REPAIR, and from there on: */
#define   MBOX_ECC_UNREPAIRABLE  0x0000f000u
#define   MBOX_ECC_REPAIRABLE    0x00000fffu
#define MBOX_API_REPAIR        6
#define MBOX_POWER(die)        (0x054 + (die) * 4) /* die = 0..1 */
#define   MBOX_POWER_SAMPLE      0xffff0000u /* counts samples */
#define   MBOX_POWER_BASIS_POINTS 0x0000ffffu /* of the maximum, 0..10000 */
#define MBOX_HBM_REPAIR        0x064
#define   MBOX_HBM_REPAIR_MASK   0x00000003u
#define   MBOX_HBM_REPAIR_NONE    0
#define   MBOX_HBM_REPAIR_PENDING 1
#define   MBOX_HBM_REPAIR_FAILED  2
#define MBOX_RUNTIME_0         0x0c0 /* .. 0x0ef: scratch of the runtime */
#define MBOX_RUNTIME_0_BYTES   0x030
#define MBOX_ACK               0x0f0 /* V4: 1: the request is in registers */
#define MBOX_DATA              0x100 /* its payload, and the response's */
#define MBOX_DATA_BYTES        0x080
#define MBOX_METRICS           0x100
#define MBOX_METRICS_BYTES     0x080
/*
 * Of a pod (several servers side by side), written by its drivers and kept over resets: while they
 * elect, serial numbers of the devices left and right of this one, for those to read over the links;
 * then what it came to, for the neighbours and for the next driver. The firmware does nothing with it.
 */
#define MBOX_LEFT_SERIAL_HI    0x180
#define MBOX_LEFT_SERIAL_LO    0x184
#define MBOX_RIGHT_SERIAL_HI   0x188
#define MBOX_RIGHT_SERIAL_LO   0x18c
#define MBOX_POD_STATUS        0x190
#define   MBOX_POD_STATE         0x000000ffu
#define     MBOX_POD_NONE          0
#define     MBOX_POD_OUTDATED      1 /* success as older drivers wrote it: elect again */
#define     MBOX_POD_FAILED        2
#define     MBOX_POD_ELECTED       3
#define   MBOX_POD_LINKS         0x0000ff00u /* bit 0: left, bit 1: right took part */
#define   MBOX_POD_NODE          0x00ff0000u /* number of this server in the pod */
#define   MBOX_POD_NODES         0xff000000u /* servers */
/* Serial number of the pod: that of device 0 of node 0. */
#define MBOX_POD_SERIAL_HI     0x194
#define MBOX_POD_SERIAL_LO     0x198
#define MBOX_RUNTIME_1         0x1a0 /* .. 0x1cf: scratch of the runtime */
#define MBOX_RUNTIME_1_BYTES   0x030
#define MBOX_RESET_MAP_HI      0x1d4
#define   MBOX_RESET_MAP_HOST_UDMA 0x0000000fu /* host engines; newer drivers alone write them */
#define MBOX_RESET_MAP         0x1d8
#define   MBOX_RESET_MAP_CORES   0x000000ffu /* bit c: core c */
#define   MBOX_RESET_MAP_UDMA    0x0000ff00u /* its 16 DMA engines */
#define   MBOX_RESET_MAP_TOPSP   0x00ff0000u /* its two TopSPs */
#define   MBOX_RESET_MAP_CC      0xff000000u /* its two collectives cores */
#define MBOX_RESET             0x1ec /* firmware clears it to acknowledge */
#define   MBOX_RESET_DEVICE      1
#define   MBOX_RESET_CORES       2 /* those in the map */
#define MBOX_REQUEST_HI        0x1f0
#define MBOX_REQUEST_LO        0x1f4
#define MBOX_RESPONSE_HI       0x1f8
#define MBOX_RESPONSE_LO       0x1fc
#define MBOX_TRIGGER           0x800 /* any write: look at reset and request */
#define MBOX_STATUS            0x808
#define   MBOX_STATUS_NOT_READY  0x00000008u

/* Execution interface: the firmware itself, and a sensor that the public registers lack. */
#define MBOX_FW_INTERFACE      0x900 /* MBOX_FW_INTERFACE_V1 where these exist */
#define   MBOX_FW_INTERFACE_V1   0x3157464eu
#define MBOX_FW_VERSION        0x904 /* FWI_VERSION() of the firmware that runs */
#define MBOX_FW_BOOT           0x908 /* how it came to run */
#define   MBOX_FW_BOOT_CAUSE     0x0000000fu
#define     MBOX_FW_BOOT_POWER_ON  1
#define     MBOX_FW_BOOT_LOADED    2 /* MBOX_CMD_LOAD_FIRMWARE */
#define     MBOX_FW_BOOT_WATCHDOG  3 /* the one before hung */
#define     MBOX_FW_BOOT_FAULT     4 /* the one before could not go on */
#define     MBOX_FW_BOOT_HOST      5 /* MBOX_FW_RESTART */
#define   MBOX_FW_BOOT_LOADED_IMAGE 0x00000010u /* not the boot image */
#define   MBOX_FW_BOOT_COUNT     0xffff0000u /* starts since power-on, modulo 65536 */
#define MBOX_FW_HEARTBEAT      0x90c /* counts what the firmware was woken for and did */
#define MBOX_FW_RESTART        0x910 /* the host writes the key: start the boot image */
#define   MBOX_FW_RESTART_KEY    0x424f4f54u
#define MBOX_TEMPERATURE(die)  (0x918 + (die) * 4) /* die = 0..1 */
#define   MBOX_TEMPERATURE_SAMPLE 0xffff0000u /* counts samples */
#define   MBOX_TEMPERATURE_TENTHS 0x0000ffffu /* of a degree Celsius */

/* What a register reads as while the firmware can't answer: try again. */
#define MBOX_NOT_READY 0xdeadbeefu

/* Request. Sizes include the header. */
struct mbox_request {
	__u8 sequence; /* 1..255; 0 is never used */
	__u8 command;
	__le16 size;   /* bytes */
	__le32 crc;    /* CRC-32C of size bytes with this field zero */
	/* payload follows */
};

struct mbox_response {
	__u8 sequence; /* of the request; written last */
	__u8 error;
	__le16 size;   /* bytes */
	/* payload follows */
};

/* Header of a response in registers. */
struct mbox_register_response {
	struct mbox_response head;
	__le32 crc; /* as of the request; the public driver does not look at it */
};

#define MBOX_CMD_READ_REGS    1 /* __le64 device addresses -> __le32 values */
#define MBOX_CMD_POST_METRICS 2 /* payload of at most MBOX_METRICS_BYTES; header only back */

/* In registers only, on demand of tools; ours does not know them. */
#define MBOX_CMD_POWER_PROFILE 3
#define MBOX_CMD_GET_DATA      4
#define MBOX_CMD_SET_FEATURE   5

/* Execution interface: struct mbox_load_firmware -> struct mbox_load_verdict. Accepted, the image
 * starts after the answer: MBOX_STATUS_NOT_READY until it is ready, MBOX_FW_BOOT tells the rest. */
#define MBOX_CMD_LOAD_FIRMWARE 0x80

#define MBOX_OK               0
#define MBOX_FAILED           1
#define MBOX_UNKNOWN_COMMAND  2

/* Payloads of MBOX_CMD_LOAD_FIRMWARE. */
struct mbox_load_firmware {
	__le64 addr;     /* device address of the image (neuron_fw_image.h) */
	__le32 bytes;
	__le32 reserved; /* zero */
};

struct mbox_load_verdict {
	__le32 verdict; /* enum fwi_verdict; the error is MBOX_FAILED unless FWI_OK */
	__le32 value;   /* as struct fwi_finding */
	__le32 want;
};

#define MBOX_MESSAGE_MAX      0xffff /* bytes of a request or response */
#define MBOX_READ_REGS_MAX    100    /* registers in one request */

/* CRC-32C (Castagnoli): reflected polynomial, initial value and final xor. */
#define MBOX_CRC_POLY         0x82f63b78u
#define MBOX_CRC_INIT         0xffffffffu
#define MBOX_CRC_XOR          0xffffffffu

/* Component of bit @bit of MBOX_HEALTH as tools know it, NULL for an unknown one. */
static inline const char *mbox_health_text(__u32 bit)
{
	switch (bit) {
	case 3:
		return "hbm";
	case 4:
		return "firmware_service_api";
	case 5:
		return "firmware_service_processor";
	case 6:
		return "sram";
	case 7:
		return "link_intraserver";
	case 8:
		return "link_host";
	case 9:
		return "link_efa";
	case 10:
		return "link_interserver";
	case 11:
		return "link_switch";
	case 12:
		return "axi_fabric";
	default:
		return (const char *)0;
	}
}

/* Uncorrected errors that a counter of HBM shows, by firmware of @api_version. */
static inline __u32 mbox_hbm_uncorrected(__u32 api_version, __u32 counter)
{
	if (api_version < MBOX_API_REPAIR)
		return HW_GET(MBOX_ECC_UNCORRECTED, counter);
	return HW_GET(MBOX_ECC_UNREPAIRABLE, counter) + HW_GET(MBOX_ECC_REPAIRABLE, counter);
}

/* Time-outs of the public driver. */
#define MBOX_TIMEOUT_MS       1000
#define MBOX_TRIES            15
#define MBOX_RESET_POLL_MS    100
#define MBOX_RESET_DEVICE_RETRY_MS 30000
#define MBOX_RESET_CORES_RETRY_MS  10000
#define MBOX_RESET_MAX_MS     480000

HW_ASSERT_SIZE(struct mbox_request, 8);
HW_ASSERT_SIZE(struct mbox_response, 4);
HW_ASSERT_SIZE(struct mbox_register_response, 8);
HW_ASSERT_SIZE(struct mbox_load_firmware, 16);
HW_ASSERT_SIZE(struct mbox_load_verdict, 12);

#endif /* NEURON_MAILBOX_H */
