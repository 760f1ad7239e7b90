/* SPDX-License-Identifier: GPL-2.0-only */
#if !defined(__NEURON_TRACE_H__) || defined(TRACE_HEADER_MULTI_READ)
#define __NEURON_TRACE_H__

#include <linux/device.h>
#include <linux/tracepoint.h>

#undef TRACE_SYSTEM
#define TRACE_SYSTEM neuron
#define TRACE_INCLUDE_FILE neuron_trace

TRACE_EVENT(neuron_launch,
	    TP_PROTO(struct device *dev, u32 core, u32 queue, u32 seqno, u64 program),

	    TP_ARGS(dev, core, queue, seqno, program),

	    TP_STRUCT__entry(__string(dev, dev_name(dev))
			     __field(u32, core)
			     __field(u32, queue)
			     __field(u32, seqno)
			     __field(u64, program)),

	    TP_fast_assign(__assign_str(dev);
			   __entry->core = core;
			   __entry->queue = queue;
			   __entry->seqno = seqno;
			   __entry->program = program;),

	    TP_printk("dev=%s core=%u queue=%u seqno=%u program=%llu", __get_str(dev),
		      __entry->core, __entry->queue, __entry->seqno, __entry->program)
);

TRACE_EVENT(neuron_launch_done,
	    TP_PROTO(struct device *dev, u32 core, u32 queue, u32 seqno, int error),

	    TP_ARGS(dev, core, queue, seqno, error),

	    TP_STRUCT__entry(__string(dev, dev_name(dev))
			     __field(u32, core)
			     __field(u32, queue)
			     __field(u32, seqno)
			     __field(int, error)),

	    TP_fast_assign(__assign_str(dev);
			   __entry->core = core;
			   __entry->queue = queue;
			   __entry->seqno = seqno;
			   __entry->error = error;),

	    TP_printk("dev=%s core=%u queue=%u seqno=%u error=%d", __get_str(dev), __entry->core,
		      __entry->queue, __entry->seqno, __entry->error)
);

TRACE_EVENT(neuron_copy_start,
	    TP_PROTO(struct device *dev, u32 engine, u64 seqno, u64 size),

	    TP_ARGS(dev, engine, seqno, size),

	    TP_STRUCT__entry(__string(dev, dev_name(dev))
			     __field(u32, engine)
			     __field(u64, seqno)
			     __field(u64, size)),

	    TP_fast_assign(__assign_str(dev);
			   __entry->engine = engine;
			   __entry->seqno = seqno;
			   __entry->size = size;),

	    TP_printk("dev=%s engine=%u seqno=%llu size=%llu", __get_str(dev), __entry->engine,
		      __entry->seqno, __entry->size)
);

TRACE_EVENT(neuron_copy_done,
	    TP_PROTO(struct device *dev, u32 engine, u64 seqno, u64 size, int error),

	    TP_ARGS(dev, engine, seqno, size, error),

	    TP_STRUCT__entry(__string(dev, dev_name(dev))
			     __field(u32, engine)
			     __field(u64, seqno)
			     __field(u64, size)
			     __field(int, error)),

	    TP_fast_assign(__assign_str(dev);
			   __entry->engine = engine;
			   __entry->seqno = seqno;
			   __entry->size = size;
			   __entry->error = error;),

	    TP_printk("dev=%s engine=%u seqno=%llu size=%llu error=%d", __get_str(dev),
		      __entry->engine, __entry->seqno, __entry->size, __entry->error)
);

TRACE_EVENT(neuron_move,
	    TP_PROTO(struct device *dev, u64 client, u64 size, bool out),

	    TP_ARGS(dev, client, size, out),

	    TP_STRUCT__entry(__string(dev, dev_name(dev))
			     __field(u64, client)
			     __field(u64, size)
			     __field(bool, out)),

	    TP_fast_assign(__assign_str(dev);
			   __entry->client = client;
			   __entry->size = size;
			   __entry->out = out;),

	    TP_printk("dev=%s client=%llu size=%llu to=%s", __get_str(dev), __entry->client,
		      __entry->size, __entry->out ? "host" : "hbm")
);

#endif /* __NEURON_TRACE_H__ */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#include <trace/define_trace.h>
