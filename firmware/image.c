// SPDX-License-Identifier: Apache-2.0
/* Another image from the host: fetched behind the request buffer, checked, started. */
#include "firmware.h"
#include "neuron_fw_image.h"
#include "neuron_mailbox.h"

/* mailbox.c has what is below. */
#define IMAGE_AT (MGMT_STAGE + 0x20000)
_Static_assert(0x20000 + FWI_BYTES_MAX <= MGMT_STAGE_BYTES, "no room for an image");

static __u32 loaded; /* bytes of a good image; 0: none */

static __u32 verdict_of(const struct mbox_load_firmware *what, struct fwi_finding *f)
{
	struct fw_image *image = (struct fw_image *)IMAGE_AT;
	__u32 crc = 0;

	f->value = what->bytes;
	f->want = 0;
	if (what->bytes > FWI_BYTES_MAX)
		return fwi_found(f, FWI_BAD_SIZE, what->bytes, FWI_BYTES_MAX);
	if (!bus_read(what->addr, image, what->bytes))
		return FWI_NO_ANSWER;
	if (what->bytes >= FWI_BYTES_MIN)
		crc = fwi_crc(image, what->bytes);
	return fwi_check(image, what->bytes, crc, reg_read(MGMT_CHIP_ARCH), f);
}

bool image_load(const struct mbox_load_firmware *what, struct mbox_load_verdict *verdict)
{
	struct fwi_finding f;

	verdict->verdict = verdict_of(what, &f);
	verdict->value = f.value;
	verdict->want = f.want;
	loaded = verdict->verdict == FWI_OK ? what->bytes : 0;
	return loaded;
}

void image_start(void)
{
	if (!loaded)
		return;
	reg_write(MGMT_BOOT_IMAGE, IMAGE_AT);
	reg_write(MGMT_BOOT_BYTES, loaded);
	loaded = 0;
	reg_write(MGMT_BOOT_GO, MGMT_BOOT_LOAD);
}
