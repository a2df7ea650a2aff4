/* ONNX Runtime's C API under the runner contract: docs/runner-contract.md. */

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "measure.h"
#include "result.h"

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "GCC " __VERSION__
#endif

int main(int argc, char **argv)
{
    static void (*const levels[])(const struct plan *) = {
        [LEVEL_LATENCY] = run_latency, [LEVEL_LOAD] = run_load,
        [LEVEL_CASES] = run_cases, [LEVEL_TRAIN] = run_train,
    };
    char why[4096];
    if (argc != 2)
        fail(CAUSE_BAD_INPUT, "usage: transect-runner-c PLAN");
    const struct plan *plan = plan_open(argv[1], why, sizeof why);
    if (plan == NULL)
        fail(CAUSE_BAD_INPUT, "%s", why);
    result_open(plan_text(plan, ROLE_OUT, ANY_GROUP));
    runtime_open(plan_text(plan, ROLE_LIBRARY, ANY_GROUP));
    levels[plan->level](plan);

    const char *provider = plan_text(plan, ROLE_PROVIDER, ANY_GROUP);
    /* The provider `cpu` has no options of its own. */
    bool left_out = strcmp(provider, "cpu") == 0 &&
                    plan_count(plan, ROLE_PROVIDER_OPTION, ANY_GROUP) > 0;
    fact_text("status", "ok");
    fact_text("runtime_version", runtime.version);
    fact_text("build_info", api->GetBuildInfoString());
    fact_text("language_version", "C11, " COMPILER);
    fact_text("provider_used", provider);
    fputs(left_out ? "[\"provider_options\"]" : "[]", fact("options_not_set"));
    fputs("[]", fact("run_includes"));
    say();
    /* The system takes back what is still there, without the destructors of libraries. */
    _exit(0);
}
