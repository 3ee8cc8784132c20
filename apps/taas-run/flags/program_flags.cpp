#include "flags/setters.hpp"
#include "plan/program/preload.hpp"

namespace taas::cli {
namespace {

constexpr Flag kProgramFlags[] = {
    {"module", 'm', "", "PROGRAM is a Python module, as in python -m",
     [](auto& options, const auto& values) { return store(options.program.module, read_switch(values.back())); }},
    {"no-python", 0, "", "Execute PROGRAM as it is, even if it ends in .py",
     [](auto& options, const auto& values) { return store(options.program.no_python, read_switch(values.back())); }},
    {"run-path", 0, "", "PROGRAM is a Python script whatever its name",
     [](auto& options, const auto& values) { return store(options.program.script, read_switch(values.back())); }},
    {"preload", 0, "auto|none|MODULES",
     "Ranks come out of one Python on each node that has imported these (default: auto)",
     [](auto& options, const auto& values) {
       return store_checked(options.program.preload, values.back(), plan::check_preload);
     },
     Flag::Origin::kOwn},
    {"numa-binding", 0, "node|socket|exclusive|core-complex", "Bind each rank to processors near its GPU",
     [](auto& options, const auto& values) {
       return store_choice<NumaBinding>(options.program.numa_binding, values.back(),
                                        {{"node", NumaBinding::kNode},
                                         {"socket", NumaBinding::kSocket},
                                         {"exclusive", NumaBinding::kExclusive},
                                         {"core-complex", NumaBinding::kCoreComplex}});
     },
     Flag::Origin::kTorchrunWithoutPet},
    {"virtual-local-rank", 0, "", "Each rank sees only its own GPU, as device 0, and LOCAL_RANK is 0",
     [](auto& options, const auto& values) {
       return store(options.rendezvous.virtual_local_rank, read_switch(values.back()));
     }},
    {"role", 0, "NAME", "ROLE_NAME of the ranks (default: default)",
     [](auto& options, const auto& values) {
       options.rendezvous.role = values.back();
       return Result<>();
     }},
    {"start-method", 0, "spawn|fork|forkserver", "No effect: ranks are started without multiprocessing",
     [](auto& options, const auto& values) -> Result<> {
       const auto& method = values.back();
       if (method == "spawn" || method == "fork" || method == "forkserver") {
         return note_without_effect(options, "--start-method");
       }
       return usage_error("not one of spawn, fork, forkserver");
     }},
};

}  // namespace

FlagGroup program_flags() { return {"Program", kProgramFlags}; }

}  // namespace taas::cli
