# SPDX-License-Identifier: GPL-2.0
#
# The commands of the project.  Each only names a script in scripts/, which
# says what it does and what it needs; 'make help' lists them.  Output goes to
# build/, downloads to ${XDG_CACHE_HOME:-~/.cache}/softrnic.

.DEFAULT_GOAL := all
.NOTPARALLEL:
SHELL := /bin/bash

# The running kernel when its headers are installed, else the guest's.
KERNEL ?= $(shell test -d /lib/modules/$$(uname -r)/build && echo host || echo 6.1)

.PHONY: all
all: modules provider tools

.PHONY: modules
modules:
	@echo "== building for $(if $(filter host,$(KERNEL)),the running kernel $$(uname -r),kernel $(KERNEL) (the running kernel has no headers here; KERNEL=... chooses another))"
	@scripts/build-module.sh $(KERNEL)

.PHONY: provider
provider:
	@scripts/build-provider.sh

.PHONY: tools
tools:
	@scripts/build-tools.sh

.PHONY: demo
demo:
	@scripts/demo.sh

.PHONY: check
check:
	@scripts/check.sh quick

.PHONY: check-full
check-full:
	@scripts/check.sh full

.PHONY: check-style
check-style:
	@scripts/check-style.sh

.PHONY: install
install:
	@scripts/install.sh

.PHONY: uninstall
uninstall:
	@scripts/install.sh --remove

.PHONY: clean
clean:
	@rm -rf build
	@for dir in tools tests/unit tests/fuzz tests/tools tests/verbs; do \
		[ ! -f $$dir/Makefile ] || $(MAKE) -s --no-print-directory -C $$dir clean; \
	done

.PHONY: help
help:
	@echo "make              the module (for the running kernel when its headers are there,"
	@echo "                  else for the 6.1 guest; KERNEL=6.1|6.12|7.2|7.2-kasan|host"
	@echo "                  chooses), the provider and the tools"
	@echo "make modules      the module alone"
	@echo "make provider     the rdma-core provider alone"
	@echo "make tools        the user programs alone"
	@echo "make demo         two hosts with softrnic in a guest, and a table of figures"
	@echo "make check        style, unit tests, fuzzing, device tests in the 6.1 guest"
	@echo "make check-full   what takes longer: 7.2 kernels (compiled once), KASAN, rxe, pyverbs"
	@echo "make check-style  the style alone"
	@echo "make install      module, provider, udev rules and tools on this machine (as root)"
	@echo "make uninstall    takes them away again"
	@echo "make clean        removes build/; downloads stay in ~/.cache/softrnic"
	@echo
	@echo "scripts/guest.sh --kernel 6.1 -- COMMAND   runs COMMAND in a guest"
