# SPDX-License-Identifier: Apache-2.0
#
# The front door. Every target runs inside the environment that env/run makes.
# V=1 shows commands.

ifeq ($(NEURON_ENV),)
RUN := env/run
endif
B := build/release
JOBS := $(shell nproc)
Q := $(if $(V),,@)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

env: ## make the environment (cached; the other targets do it too)
	$(Q)env/run --prepare

build: ## build all of user space and the kernel module in build/release
	$(Q)$(RUN) tests/build release
	$(Q)$(RUN) driver/build

demo: ## train the digits classifier on the embedded virtual Trainium2
	$(Q)$(RUN) tests/build release
	$(Q)$(RUN) env PYTHONPATH=$(B)/python python3 -m torch_neuronx.run examples/digits.py

test: ## every test; a log per stage in build/logs
	$(Q)$(RUN) tests/stages

check: ## formatting, style, static analysis, licences
	$(Q)$(RUN) tests/check

test-lts: ## the VM's tests on the long-term kernel, 6.12
	$(Q)$(RUN) tests/build release
	$(Q)$(RUN) tests/vm/lts

test-debug: ## the VM's tests on a kernel with KASAN, lockdep, kmemleak, fault injection
	$(Q)$(RUN) tests/build release
	$(Q)$(RUN) tests/vm/debug

stress: ## fuzzing, 200 loads and unloads, 200 kill -9 in the VM; longer: see tests/vm/stress
	$(Q)$(RUN) tests/build release
	$(Q)$(RUN) driver/build
	$(Q)$(RUN) tests/vm/stress

kunit: ## the driver's KUnit suites
	$(Q)$(RUN) tests/kunit

bench: build ## times against PyTorch's CPU backend, and of the ioctls in the VM
	$(Q)$(RUN) env PYTHONPATH=$(B)/python python3 bench/bench.py --history
	$(Q)$(RUN) tests/vm/modules
	$(Q)$(RUN) tests/vm/run -- sh -c 'modprobe neuron && $(B)/tests/ioctl_bench'

timing-check: ## the device's timing model against published figures
	$(Q)$(RUN) tests/build release
	$(Q)$(RUN) $(B)/model/timing_check

kernel-table: ## what the compiler's kernels reach on the timing model
	$(Q)$(RUN) tests/build release
	$(Q)$(RUN) $(B)/userspace/compiler/tests/kernel_table

vm: build ## a root shell in the VM with the device attached
	$(Q)$(RUN) tests/vm/run --shell

dkms-install: ## install the module on this machine through DKMS, as root
	$(Q)driver/dkms install

dkms-remove: ## remove it, all versions, as root
	$(Q)driver/dkms remove

clean: ## remove build/; the environment stays in the cache
	$(Q)rm -rf build

.PHONY: help env build demo test test-lts test-debug stress check kunit bench timing-check kernel-table vm dkms-install dkms-remove clean
