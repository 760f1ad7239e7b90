// SPDX-License-Identifier: Apache-2.0
/* What the APB BAR shows of a core: SBUF and semaphores. */
#include "device.h"

static bool in(uint32_t offset, uint32_t base, uint32_t n, unsigned int *i)
{
	*i = (offset - base) / 4;
	return offset >= base && *i < n;
}

static bool tpb_read(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t *value)
{
	struct nm_core *core = dev->core[b->index];
	unsigned int i;

	if (offset < V3_TPB_SBUF_BYTES)
		return nm_core_sbuf_read(core, offset, value, sizeof(*value)) == 0;
	if (!in(offset, V3_TPB_SEM_READ, V3_SEMAPHORES, &i))
		return false;
	*value = nm_core_sem_read(core, i);
	return true;
}

static bool tpb_write(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t value)
{
	struct nm_core *core = dev->core[b->index];
	unsigned int i;

	if (offset < V3_TPB_SBUF_BYTES)
		return nm_core_sbuf_write(core, offset, &value, sizeof(value)) == 0;
	if (in(offset, V3_TPB_SEM_SET, V3_SEMAPHORES, &i))
		nm_core_sem_write(core, i, NM_SEM_SET, value);
	else if (in(offset, V3_TPB_SEM_INC, V3_SEMAPHORES, &i))
		nm_core_sem_write(core, i, NM_SEM_INC, value);
	else if (in(offset, V3_TPB_SEM_DEC, V3_SEMAPHORES, &i))
		nm_core_sem_write(core, i, NM_SEM_DEC, value);
	else
		return false;
	return true;
}

int nm_tpb_init(struct nm_device *dev, struct block *b)
{
	(void)dev;
	b->ops.window_read = tpb_read;
	b->ops.window_write = tpb_write;
	return 0;
}
