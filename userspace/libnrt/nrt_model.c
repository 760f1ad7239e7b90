// SPDX-License-Identifier: Apache-2.0
/* Models: a program with named tensors. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nrt/nrt_experimental.h>

#include "neuron_isa.h"
#include "nrt_impl.h"

NRT_STATUS nrti_model_check(const nrt_model_t *model)
{
	NRT_STATUS status = nrti_runtime_check();

	if (status)
		return status;
	if (!model || model->magic != NRT_MAGIC_MODEL)
		return nrti_error(NRT_INVALID_HANDLE, "not a model");
	return NRT_SUCCESS;
}

/* --- life -------------------------------------------------------------------------------- */

static NRT_STATUS load(nrt_model_t *model, const void *bytes, size_t size)
{
	NRT_STATUS status;
	void *image;

	/* The caller's address may have any alignment. */
	image = aligned_alloc(64, (size + 63) & ~(size_t)63);
	if (!image)
		return nrti_errno(-ENOMEM, "loading a model of %zu bytes", size);
	memcpy(image, bytes, size);
	status = nrtx_program_load(model->vnc, image, size, &model->program);
	free(image);
	for (uint32_t i = 0; i < model->n_lanes && !status; i++)
		status = nrti_stream_create_at(model->vnc, i, &model->lane[i].stream);
	return status;
}

static void model_free(nrt_model_t *model)
{
	for (uint32_t i = 0; i < model->n_lanes; i++) {
		nrtx_stream_destroy(model->lane[i].stream);
		pthread_mutex_destroy(&model->lane[i].lock);
	}
	nrtx_program_unload(model->program);
	model->magic = 0;
	free(model);
}

NRT_STATUS nrt_load(const void *neff_bytes, size_t size, int32_t vnc, int32_t vnc_count,
		    nrt_model_t **out)
{
	NRT_STATUS status = nrti_runtime_check();
	const struct nrti_core *core;
	nrt_model_t *model;
	uint32_t magic;

	(void)vnc_count;
	if (status)
		return status;
	if (!neff_bytes || size < sizeof(magic) || size > NPROG_IMAGE_MAX || !out || vnc < -1)
		return nrti_error(NRT_INVALID, "nrt_load: %zu bytes at %p for core %d", size,
				  neff_bytes, vnc);
	*out = NULL;
	memcpy(&magic, neff_bytes, sizeof(magic));
	if (magic != NPROG_MAGIC)
		return nrti_error(NRT_UNSUPPORTED_NEFF_VERSION,
				  "nrt_load: not a program image (it starts with 0x%08x); NEFF "
				  "files are not supported yet",
				  magic);
	core = nrti_core_get(vnc < 0 ? 0 : (uint32_t)vnc, &status);
	if (!core)
		return status;
	model = calloc(1, sizeof(*model));
	if (!model)
		return nrti_errno(-ENOMEM, "loading a model");
	model->magic = NRT_MAGIC_MODEL;
	model->vnc = vnc < 0 ? 0 : (uint32_t)vnc;
	model->n_lanes = core->size;
	for (uint32_t i = 0; i < model->n_lanes; i++)
		pthread_mutex_init(&model->lane[i].lock, NULL);
	status = load(model, neff_bytes, size);
	if (status)
		model_free(model);
	else
		*out = model;
	return status;
}

NRT_STATUS nrt_unload(nrt_model_t *model)
{
	if (!model || model->magic != NRT_MAGIC_MODEL)
		return nrti_error(NRT_INVALID_HANDLE, "nrt_unload: not a model");
	model_free(model);
	return NRT_SUCCESS;
}

static NRT_STATUS model_count(const nrt_model_t *model, bool lanes, uint32_t *count)
{
	NRT_STATUS status = nrti_model_check(model);

	if (status)
		return status;
	if (!count)
		return nrti_error(NRT_INVALID, "the place for the count is NULL");
	*count = lanes ? model->n_lanes : 1;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_get_model_nc_count(const nrt_model_t *model, uint32_t *count)
{
	return model_count(model, false, count);
}

NRT_STATUS nrt_get_model_vnc_count(const nrt_model_t *model, uint32_t *count)
{
	return model_count(model, false, count);
}

NRT_STATUS nrt_get_model_instance_count(nrt_model_t *model, uint32_t *instance_count)
{
	return model_count(model, true, instance_count);
}

NRT_STATUS nrt_get_model_info(const nrt_model_t *model, nrt_model_info_t *info, size_t info_size_in,
			      size_t *info_size_out)
{
	NRT_STATUS status = nrti_model_check(model);
	nrt_model_info_t all;
	size_t size = info_size_in < sizeof(all) ? info_size_in : sizeof(all);

	if (status)
		return status;
	if (!info || !size)
		return nrti_error(NRT_INVALID, "nrt_get_model_info: no place for the answer");
	all.vnc = model->vnc;
	memcpy(info, &all, size);
	if (info_size_out)
		*info_size_out = size;
	return NRT_SUCCESS;
}

/* --- names ---------------------------------------------------------------------------------- */

static bool is_input(const struct nprog_slot *slot)
{
	return slot->kind == NPROG_SLOT_INPUT || slot->kind == NPROG_SLOT_INOUT ||
	       slot->kind == NPROG_SLOT_SCALAR;
}

static bool is_output(const struct nprog_slot *slot)
{
	return slot->kind == NPROG_SLOT_OUTPUT || slot->kind == NPROG_SLOT_INOUT;
}

/* n: its place among the inputs or outputs. */
static void slot_name(const struct nprog_slot *slot, bool output, uint32_t n, char *name,
		      size_t bytes)
{
	if (slot->name[0])
		snprintf(name, bytes, "%.*s", (int)sizeof(slot->name), (const char *)slot->name);
	else
		snprintf(name, bytes, "%s%u", output ? "output" : "input", n);
}

static void fill_info(const struct nprog_slot *slot, bool output, uint32_t n,
		      nrt_tensor_info_t *info, uint32_t *shape)
{
	slot_name(slot, output, n, info->name, sizeof(info->name));
	info->usage = output ? NRT_TENSOR_USAGE_OUTPUT : NRT_TENSOR_USAGE_INPUT;
	info->size = slot->kind == NPROG_SLOT_SCALAR ? 8 : slot->min_bytes;
	info->dtype = (nrt_dtype_t)slot->dtype;
	info->ndim = slot->ndim;
	info->shape = shape;
	for (uint32_t i = 0; i < slot->ndim; i++)
		shape[i] = slot->dims[i];
}

NRT_STATUS nrt_get_model_tensor_info(nrt_model_t *model, nrt_tensor_info_array_t **tensor_info)
{
	NRT_STATUS status = nrti_model_check(model);
	const struct nrtx_program *program;
	nrt_tensor_info_array_t *array;
	uint32_t n = 0, n_out = 0;
	uint32_t *shape;

	if (status)
		return status;
	if (!tensor_info)
		return nrti_error(NRT_INVALID, "nrt_get_model_tensor_info: tensor_info is NULL");
	program = model->program;
	/* Shapes lie behind the array, so that one free() does for all. */
	array = calloc(1, sizeof(*array) + 2 * program->n_slots *
						   (sizeof(nrt_tensor_info_t) +
						    NPROG_DIMS_MAX * sizeof(*shape)));
	if (!array)
		return nrti_errno(-ENOMEM, "listing the tensors of a model");
	shape = (uint32_t *)&array->tensor_array[2 * program->n_slots];
	for (uint32_t i = 0; i < program->n_slots; i++) {
		if (!is_input(&program->slots[i]))
			continue;
		fill_info(&program->slots[i], false, n, &array->tensor_array[n],
			  &shape[n * NPROG_DIMS_MAX]);
		n++;
	}
	for (uint32_t i = 0; i < program->n_slots; i++) {
		if (!is_output(&program->slots[i]))
			continue;
		fill_info(&program->slots[i], true, n_out++, &array->tensor_array[n],
			  &shape[n * NPROG_DIMS_MAX]);
		n++;
	}
	array->tensor_count = n;
	*tensor_info = array;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_free_model_tensor_info(nrt_tensor_info_array_t *tensor_info)
{
	free(tensor_info);
	return NRT_SUCCESS;
}

/* --- execution --------------------------------------------------------------------------------- */

/* A slot and the tensor that goes there; host tensors get device memory meanwhile. */
struct binding {
	nrt_tensor_t *tensor;
	struct nrtx_buffer *temporary;
	bool output;
};

static NRT_STATUS bind_scalar(struct nrtx_stream *stream, const nrt_tensor_t *tensor,
			      struct nrtx_arg *arg)
{
	uint64_t value = 0;
	NRT_STATUS status =
		nrti_tensor_read(stream, tensor, &value, 0, tensor->size < 8 ? tensor->size : 8);

	*arg = (struct nrtx_arg){ .offset = value, .bytes = 8 };
	return status;
}

static NRT_STATUS bind_host(struct nrtx_stream *stream, const struct nprog_slot *slot,
			    struct binding *binding, struct nrtx_arg *arg)
{
	nrt_tensor_t *tensor = binding->tensor;
	NRT_STATUS status;

	status = nrtx_buffer_alloc(stream->core, tensor->size, &binding->temporary);
	if (!status && is_input(slot))
		status = nrtx_copy_to_device(stream, binding->temporary, 0,
					     tensor->storage->host + tensor->offset, tensor->size);
	*arg = (struct nrtx_arg){ .buffer = binding->temporary, .bytes = tensor->size };
	return status;
}

static NRT_STATUS bind(const nrt_model_t *model, struct nrtx_stream *stream,
		       const struct nprog_slot *slot, const char *name, struct binding *binding,
		       struct nrtx_arg *arg)
{
	nrt_tensor_t *tensor = binding->tensor;

	if (!tensor)
		return nrti_error(NRT_EXEC_BAD_INPUT, "model '%s': the sets have no tensor '%s'",
				  model->program->name, name);
	if (tensor->magic != NRT_MAGIC_TENSOR || !tensor->storage)
		return nrti_error(NRT_EXEC_BAD_INPUT, "model '%s': tensor '%s' has no memory",
				  model->program->name, name);
	if (slot->kind == NPROG_SLOT_SCALAR)
		return bind_scalar(stream, tensor, arg);
	if (tensor->size < slot->min_bytes)
		return nrti_error(NRT_EXEC_BAD_INPUT,
				  "model '%s': tensor '%s' has %zu bytes, needs %llu",
				  model->program->name, name, tensor->size,
				  (unsigned long long)slot->min_bytes);
	if (!tensor->storage->buffer)
		return bind_host(stream, slot, binding, arg);
	*arg = (struct nrtx_arg){
		.buffer = tensor->storage->buffer,
		.offset = tensor->offset,
		.bytes = tensor->size,
	};
	return NRT_SUCCESS;
}

static NRT_STATUS bind_all(const nrt_model_t *model, struct nrtx_stream *stream,
			   const nrt_tensor_set_t *in, const nrt_tensor_set_t *out,
			   struct binding *binding, struct nrtx_arg *args)
{
	const struct nrtx_program *program = model->program;
	uint32_t n_in = 0, n_out = 0, n = 0;
	char name[NRT_TENSOR_NAME_MAX];
	NRT_STATUS status = NRT_SUCCESS;

	for (uint32_t i = 0; i < program->n_slots && !status; i++) {
		const struct nprog_slot *slot = &program->slots[i];
		const bool input = is_input(slot);

		if (slot->kind == NPROG_SLOT_SCRATCH)
			continue;
		slot_name(slot, !input, input ? n_in : n_out, name, sizeof(name));
		n_in += input;
		n_out += is_output(slot);
		binding[n].output = is_output(slot);
		binding[n].tensor = nrti_set_find(input ? in : out, name);
		if (!binding[n].tensor && slot->kind == NPROG_SLOT_INOUT)
			binding[n].tensor = nrti_set_find(out, name);
		status = bind(model, stream, slot, name, &binding[n], &args[n]);
		n++;
	}
	return status;
}

static NRT_STATUS finish(const nrt_model_t *model, struct nrtx_stream *stream,
			 struct binding *binding)
{
	NRT_STATUS status = NRT_SUCCESS;

	for (uint32_t i = 0; i < model->program->n_args && !status; i++) {
		nrt_tensor_t *tensor = binding[i].tensor;

		if (!binding[i].output)
			continue;
		if (binding[i].temporary)
			status = nrtx_copy_to_host(stream, tensor->storage->host + tensor->offset,
						   binding[i].temporary, 0, tensor->size);
		if (!status)
			tensor->completions++;
	}
	return status;
}

static NRT_STATUS execute(const nrt_model_t *model, struct nrtx_stream *stream,
			  const nrt_tensor_set_t *in, nrt_tensor_set_t *out, int count,
			  struct binding *binding, struct nrtx_arg *args)
{
	NRT_STATUS status = bind_all(model, stream, in, out, binding, args);

	for (int i = 0; i < count && !status; i++)
		status = nrtx_launch(stream, model->program, args, model->program->n_args);
	if (!status)
		status = nrtx_stream_sync(stream);
	if (!status)
		status = finish(model, stream, binding);
	for (uint32_t i = 0; i < model->program->n_args; i++)
		nrtx_buffer_free(binding[i].temporary);
	return status;
}

/* The first lane that nobody uses, or in turns one that somebody does, locked. */
static struct nrt_lane *lane_take(nrt_model_t *model)
{
	struct nrt_lane *lane;

	for (uint32_t i = 0; i < model->n_lanes; i++) {
		if (!pthread_mutex_trylock(&model->lane[i].lock))
			return &model->lane[i];
	}
	lane = &model->lane[model->turn++ % model->n_lanes];
	pthread_mutex_lock(&lane->lock);
	return lane;
}

NRT_STATUS nrt_execute_repeat(nrt_model_t *model, const nrt_tensor_set_t *input_set,
			      nrt_tensor_set_t *output_set, int repeat_count)
{
	NRT_STATUS status = nrti_model_check(model);
	struct binding *binding;
	struct nrtx_arg *args;
	struct nrt_lane *lane;
	uint32_t n;

	if (!status)
		status = nrti_set_check(input_set, "nrt_execute, inputs");
	if (!status)
		status = nrti_set_check(output_set, "nrt_execute, outputs");
	if (status)
		return status;
	if (repeat_count < 1)
		return nrti_error(NRT_INVALID, "nrt_execute_repeat: the count is %d", repeat_count);
	n = model->program->n_args + 1;
	binding = calloc(n, sizeof(*binding));
	args = calloc(n, sizeof(*args));
	if (binding && args) {
		lane = lane_take(model);
		status = execute(model, lane->stream, input_set, output_set, repeat_count, binding,
				 args);
		pthread_mutex_unlock(&lane->lock);
	} else {
		status = nrti_errno(-ENOMEM, "executing model '%s'", model->program->name);
	}
	free(binding);
	free(args);
	return status;
}

NRT_STATUS nrt_execute(nrt_model_t *model, const nrt_tensor_set_t *input_set,
		       nrt_tensor_set_t *output_set)
{
	return nrt_execute_repeat(model, input_set, output_set, 1);
}
