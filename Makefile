# Netra.  `make` alone prints the targets.  Needs git, make and Python 3.10; set-up finds or
# installs the rest (LLVM 20 or later, a C++20 compiler, the Python packages in .venv).
#
#   make validate ARGS="'argmax*' --seed 7"      ARGS goes to the command that the target runs
#   make CXX=clang++ PYTHON=python3.12 sim       another compiler, another Python

ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j2
endif
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.SUFFIXES:

PYTHON ?= python3
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
LLVM = $(file <build/llvm.txt)
HOSTCXX = $(file <build/cxx.txt)

.PHONY: help setup gfx950 gfx1151 sim bridge catalog validate test lint wheel clean asan sim-asan
.PHONY: ctorture csmith vectors hazard-fuzz bench fuzz FORCE

help:
	@echo 'make setup      .venv, LLVM, C++ compiler (found, or installed with apt as root)'
	@echo 'make gfx950     assemble asm/gfx950 into build/gfx950'
	@echo 'make gfx1151    assemble asm/gfx1151 into build/gfx1151'
	@echo 'make sim        build/sim/libamdhip64.so.7, the simulator'
	@echo 'make bridge     build/bridge/libnetra_bridge.so'
	@echo 'make catalog    build/catalog.bin, the compiled catalog (assembles and builds what it needs)'
	@echo 'make validate   all of the above, then every tactic against its oracle'
	@echo 'make test       all of the above, then pytest'
	@echo 'make lint       ruff and mypy'
	@echo 'make sim-asan   kernels and tests on a simulator built with ASan and UBSan'
	@echo 'make ctorture   GCC'"'"'s self-checking C programs on the simulator, for both targets; N= SEED='
	@echo 'make hazard-fuzz  random sequences: our wait-state verdict against LLVM; N= SEED='
	@echo 'make csmith     N random C programs: host and both targets must agree; N= SEED='
	@echo 'make vectors    recorded instruction programs; VECTORS=FILE N= SEED='
	@echo 'make fuzz       N damaged inputs for the readers and launches, under sanitizers; N= SEED='
	@echo 'make bench      how fast the simulator is, against its budget and native C'
	@echo 'make wheel      dist/*.whl with code objects and bridge inside'
	@echo 'make clean      remove everything that make made, .venv too'

# ---- set-up ----------------------------------------------------------------------------------
# The two searches run each time (a fifth of a second), so that an upgraded or removed tool is
# noticed; their files change only when the answer does, and only then is anything rebuilt.

setup: $(VENV)/netra-root build/llvm.txt build/cxx.txt

ifneq ($(file <$(VENV)/netra-root),$(CURDIR))
$(VENV)/netra-root: FORCE
endif
$(VENV)/netra-root: pyproject.toml tools/setup_venv.py | build/cxx.txt
	@$(PYTHON) tools/setup_venv.py --install --write $@ $(VENV)

build/llvm.txt: FORCE
	@$(PYTHON) tools/find_llvm.py --install --write $@

build/cxx.txt: build/llvm.txt FORCE
	@$(PYTHON) tools/find_cxx.py --install --write $@ --llvm $(LLVM) \
	  $(if $(filter-out default undefined,$(origin CXX)),--cxx '$(CXX)')

# ---- kernels ---------------------------------------------------------------------------------
# Relative paths only: two clones give the same bytes.  What an object depends on, includes and
# all, is in the .d file beside it.

OBJECTS := $(patsubst asm/%.s,build/%.co,$(wildcard asm/gfx950/*.s asm/gfx1151/*.s))

build/%.co: asm/%.s build/llvm.txt tools/assemble.py
	@echo 'assemble $<'
	@$(PYTHON) tools/assemble.py $< $@ --arch $(*D) --llvm $(LLVM) --include asm/include \
	  --dependencies $(@:.co=.d)

gfx950: $(filter build/gfx950/%,$(OBJECTS))
gfx1151: $(filter build/gfx1151/%,$(OBJECTS))
gfx950 gfx1151:
	@$(PYTHON) tools/objects_manifest.py

-include $(OBJECTS:.co=.d)

# ---- simulator and bridge --------------------------------------------------------------------
# sim/core/exec is compiled once for every x86-64 and once for machines with AVX2; which of the two
# runs is decided at run time.  build/flags.txt changes when a flag does, build/sources.txt when a
# source file comes or goes.

CXXFLAGS := -std=c++20 -O2 -g -fPIC -Wall -Wextra -Werror -pthread
FLAGS_bridge := $(CXXFLAGS) -fvisibility=hidden
# A loop that clang does not vectorise is slow, not wrong: no error (g++ has no such warning).
# Nor is it ours that std::stable_sort of libstdc++ 12 calls what it deprecates, which clang reports.
FLAGS_sim := $(CXXFLAGS) -ffp-contract=off -fno-math-errno -fno-trapping-math -Wno-pass-failed \
	-Wno-deprecated-declarations
FLAGS_asan := $(FLAGS_sim) -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=all
FLAGS_fuzz := $(FLAGS_asan) -fsanitize=fuzzer-no-link
COMPILER_fuzz = $(LLVM)/clang++
EXEC_sim := -O3
LINK_sim := -Wl,-z,defs
HOSTS := base$(if $(filter x86_64,$(shell uname -m)), v3)
HOST_base := -DNETRA_HOST_NS=host_base
HOST_v3 := -DNETRA_HOST_NS=host_v3 -march=x86-64-v3

CORE := $(patsubst sim/core/%.cc,%.o,$(wildcard sim/core/*.cc sim/core/check/*.cc))
EXEC := $(patsubst sim/core/exec/%.cc,%.o,$(wildcard sim/core/exec/*.cc))
SIMOBJECTS := $(CORE) $(foreach host,$(HOSTS),$(EXEC:%=$(host)/%))
HIPLINKS := libamdhip64.so libamdhip64.so.6 libamdhip64.so.5

# $1: flags; $2: the compiler, if not the one that set-up chose
define compile
@mkdir -p $(@D)
@echo 'compile $<'
@$(or $2,$(HOSTCXX)) $1 -MMD -MP -c $< -o $@
endef

# $1: folder in build and suffix of the FLAGS_, EXEC_, LINK_ and COMPILER_ variables
define objects
build/$1/obj/%.o: sim/core/%.cc build/cxx.txt build/flags.txt
	$$(call compile,$$(FLAGS_$1),$$(COMPILER_$1))
$(foreach host,$(HOSTS),
build/$1/obj/$(host)/%.o: sim/core/exec/%.cc build/cxx.txt build/flags.txt
	$$(call compile,$$(FLAGS_$1) $$(EXEC_$1) $$(HOST_$(host)),$$(COMPILER_$1))
)
-include $(SIMOBJECTS:%.o=build/$1/obj/%.d)
endef
define simulator
build/$1/libamdhip64.so.7: $(SIMOBJECTS:%=build/$1/obj/%) sim/core/hip.map build/sources.txt
	@echo 'link $$@'
	@$$(HOSTCXX) -shared -o $$@.tmp $$(filter %.o,$$^) $$(FLAGS_$1) $$(LINK_$1) -ldl \
	  -Wl,--version-script=sim/core/hip.map -Wl,-soname,libamdhip64.so.7
	@mv $$@.tmp $$@
$(HIPLINKS:%=build/$1/%): build/$1/libamdhip64.so.7
	@ln -sf $$(<F) $$@
$1: build/$1/libamdhip64.so.7 $(HIPLINKS:%=build/$1/%)
endef
$(foreach kind,sim asan fuzz,$(eval $(call objects,$(kind))))
$(foreach kind,sim asan,$(eval $(call simulator,$(kind))))

# The library carries the hash of the sources that decide what it computes (evidence is keyed on it).
SEMANTICS = $(file <build/semantics.txt)
$(foreach kind,sim asan fuzz,$(eval \
  build/$(kind)/obj/hip_semantics.o: FLAGS_$(kind) += -DNETRA_SEMANTICS='"$$(SEMANTICS)"'))
$(foreach kind,sim asan fuzz,$(eval build/$(kind)/obj/hip_semantics.o: build/semantics.txt))
build/semantics.txt: FORCE
	@$(PYTHON) sim/netra_sim/semantics.py --write $@

# The fuzzer is one program with libFuzzer, which is clang's; the rows for any host are enough.
FUZZOBJECTS := $(CORE) $(EXEC:%=base/%)
build/fuzz/obj/program.o: FLAGS_fuzz += -DNETRA_ONE_HOST
build/fuzz/obj/fuzz.o: sim/fuzz/fuzz.cc build/cxx.txt build/flags.txt
	$(call compile,$(FLAGS_fuzz) -Isim/core,$(COMPILER_fuzz))
build/fuzz/fuzz: $(FUZZOBJECTS:%=build/fuzz/obj/%) build/fuzz/obj/fuzz.o build/sources.txt
	@echo 'link $@'
	@$(COMPILER_fuzz) -o $@ $(filter %.o,$^) $(FLAGS_asan) -fsanitize=fuzzer -ldl
-include build/fuzz/obj/fuzz.d

BRIDGEOBJECTS := $(patsubst bridges/hip/%.cc,build/bridge/obj/%.o,$(wildcard bridges/hip/*.cc))

build/bridge/obj/%.o: bridges/hip/%.cc build/cxx.txt build/flags.txt
	$(call compile,$(FLAGS_bridge))

build/bridge/libnetra_bridge.so: $(BRIDGEOBJECTS) bridges/hip/netra_bridge.map build/sources.txt
	@echo 'link $@'
	@$(HOSTCXX) -shared -o $@.tmp $(filter %.o,$^) $(FLAGS_bridge) -ldl \
	  -Wl,--version-script=bridges/hip/netra_bridge.map -Wl,-soname,$(@F) -Wl,-z,defs
	@mv $@.tmp $@

bridge: build/bridge/libnetra_bridge.so

-include $(BRIDGEOBJECTS:.o=.d)

TEXT_flags = $(foreach name,sim asan fuzz bridge,$(FLAGS_$(name)) $(EXEC_$(name)) $(LINK_$(name))) $(HOST_v3)
TEXT_sources = $(SIMOBJECTS) $(BRIDGEOBJECTS)
build/flags.txt build/sources.txt: FORCE
	@mkdir -p build
	@echo '$(TEXT_$(basename $(@F)))' | cmp -s - $@ || echo '$(TEXT_$(basename $(@F)))' >$@

# ---- compiled catalog ------------------------------------------------------------------------
# Always run: it takes a second, and a tactic that was removed has no file to be newer than.

catalog: setup gfx950 gfx1151 sim
	@$(BIN)/netra-catalog build

# ---- commands --------------------------------------------------------------------------------

BUILT := setup gfx950 gfx1151 sim bridge catalog

validate: $(BUILT)
	@$(BIN)/netra-harness validate $(ARGS)

test: $(BUILT)
	@$(BIN)/netra-catalog check --no-evidence
	@$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/netra-root
	@$(BIN)/ruff check .
	@$(BIN)/mypy

WITH_ASAN = $(PYTHON) tools/with_asan.py --cxx '$(HOSTCXX)' build/asan/libamdhip64.so.7

# --capture=sys: a sanitizer writes its report past Python, and pytest would swallow it.
sim-asan: asan gfx950 gfx1151 setup
	@$(WITH_ASAN) $(BIN)/netra-harness validate --device sim
	@$(WITH_ASAN) $(BIN)/python -m pytest -q --capture=sys \
	  $(or $(ARGS),tests/test_inspect.py $(wildcard tests/test_sim*.py))

# Campaigns: N programs (without N: all of them; 100 for csmith), which ones is up to SEED; CHECK=1
# runs them under the sanitizer.
ctorture csmith vectors hazard-fuzz: setup sim
	@$(BIN)/python tools/campaign.py $@ $(if $(N),--count $(N)) $(if $(SEED),--seed $(SEED)) \
	  $(if $(CHECK),--check) $(if $(VECTORS),--file '$(VECTORS)') $(ARGS)

# ARGS: options of tools/bench.py.
bench: setup sim gfx950
	@$(BIN)/python tools/bench.py $(ARGS)

# N inputs shared by the readers (elf, notes, bundle, text), or with KIND= by one of them or launch.
fuzz: setup build/fuzz/fuzz gfx950 gfx1151
	@$(BIN)/python tools/fuzz.py $(if $(N),--count $(N)) $(if $(SEED),--seed $(SEED)) \
	  $(if $(KIND),--kind $(KIND)) $(ARGS)

wheel: $(BUILT)
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

clean:
	rm -rf build dist $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
