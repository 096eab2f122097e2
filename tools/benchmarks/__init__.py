"""The benchmark suite behind `tools/bench.py`.

    workload   keys, values, queries, absent keys, all from one seed
    subject    what a store or filter has to offer to be measured; which subjects there are, which are skipped and why
    ours, peers                 the stores
    filters                     the filters
    measure    CPU and wall time, percentiles        peak    memory of a build        cold    pages that are not cached
    mphf, store, filter         the sub-commands     record  machine, versions, JSON lines
    quoted     figures of programs that are not run here, for tools/plot.py

Only `mphf` and `ours` import mphfstore: the other modules also run under an interpreter that has just one peer."""
