// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Sizes and member offsets of every structure that lies in memory, relations between macros, texts. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "../neuron_crc32c.h"
#include "../neuron_fw_image.h"
#include "../neuron_mailbox.h"
#include "../neuron_map_v3.h"
#include "../neuron_notify.h"
#include "../neuron_pci.h"
#include "../neuron_program.h"
#include "../neuron_queue.h"
#include "../neuron_udma.h"

#define AT(type, member, offset) HW_ASSERT(offsetof(type, member) == (offset), #type "." #member)

AT(struct udma_desc, ctrl, 0);
AT(struct udma_desc, meta, 4);
AT(struct udma_desc, addr, 8);

AT(struct mbox_request, command, 1);
AT(struct mbox_request, size, 2);
AT(struct mbox_request, crc, 4);
AT(struct mbox_response, error, 1);
AT(struct mbox_response, size, 2);
AT(struct mbox_load_firmware, bytes, 8);
AT(struct mbox_load_verdict, want, 8);
AT(struct fw_image, arch, 12);
AT(struct fw_image, crc, 32);

AT(struct nq_entry, status, 4);
AT(struct nq_entry, seqno, 8);
AT(struct nq_entry, value, 16);
AT(struct nq_entry, time_ns, 24);

AT(struct exi_launch, program_bytes, 16);
AT(struct exi_launch, slots_addr, 24);
AT(struct exi_launch, seqno, 32);
AT(struct exi_slot, size, 8);
AT(struct exi_slot, rights, 16);
AT(struct exi_record, phase, 7);
AT(struct exi_record, value, 16);
AT(struct exi_record, insts, 56);

/* Field helpers. */
HW_ASSERT(HW_GET(UDMA_DESC_RING_ID, 0x3ff00001u) == 3, "HW_GET");
HW_ASSERT(HW_SET(UDMA_DESC_RING_ID, 2u) == 0x02000000u, "HW_SET");
HW_ASSERT(HW_SET(UDMA_PTR_RING_ID, 3u) == 0xc0000000u, "HW_SET at the top");
HW_ASSERT(HW_GET(0xffffffffu, 0x12345678u) == 0x12345678u, "HW_GET of a whole word");
HW_ASSERT(HW_SET(0x0000ffffu, 0x12345678u) == 0x5678u, "HW_SET drops what does not fit");

/* Blocks of the execution interface BAR do not run into each other. */
HW_ASSERT(EXI_QUEUE(V3_CORES, 0) <= EXI_UDMA_ROUTE(0, 0), "core queues end before the routes");
HW_ASSERT(EXI_UDMA_ROUTE(V3_UDMA_ENGINES, 0) <= EXI_BAR_BYTES, "routes fit in the BAR");
HW_ASSERT(EXI_MSIX_TABLE + EXI_MSIX_VECTORS * 16 <= EXI_MSIX_PBA, "MSI-X table ends before PBA");
HW_ASSERT(NQ_HEAD + (NQ_QUEUES - 1) * NQ_STRIDE < NQ_BLOCK_BYTES, "notification block");
HW_ASSERT(UDMA_Q(UDMA_QUEUES) <= UDMA_S2M, "queues end before the next half");

/* Each status has a text of its own, also apart from that of an unknown one. */
static int same_texts(void)
{
	int same = 0;

	for (__u32 a = 0; a < EXI_FAULTS; a++)
		for (__u32 b = a + 1; b <= EXI_FAULTS; b++)
			if (!strcmp(exi_fault_text(a), exi_fault_text(b))) {
				printf("status %u and %u are both '%s'\n", a, b, exi_fault_text(a));
				same++;
			}
	return same;
}

int main(void)
{
	puts("hw layout: checked at compile time");
	return same_texts() != 0;
}
