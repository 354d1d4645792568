//! The resources of this run in a batch system (Slurm, PBS, LSF or Grid Engine), from the variables that it sets.

use std::time::{SystemTime, UNIX_EPOCH};

/// A job of a batch system.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BatchJob {
    /// Whose job it is.
    pub system: &'static str,
    /// Its number.
    pub id: String,
    /// Its number in an array of jobs, and how many there are, where that is said.
    pub task: Option<(u64, Option<u64>)>,
    /// Nodes, ranks, processors of each rank, where that is said.
    pub nodes: Option<u64>,
    pub ranks: Option<u64>,
    pub cores: Option<u64>,
    /// Memory on each node, in bytes.
    pub memory: Option<u64>,
    /// The GPUs, as the system names them.
    pub gpus: Option<String>,
    /// Seconds until the system ends it.
    pub left: Option<u64>,
    /// How often it was begun anew before.
    pub restarts: u64,
}

/// The job that this run is, if it is one.
pub fn job() -> Option<BatchJob> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let lines = |file: &str| std::fs::read_to_string(file).ok();
    read(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()), &lines, now)
}

fn read(
    variable: &dyn Fn(&str) -> Option<String>,
    file: &dyn Fn(&str) -> Option<String>,
    now: u64,
) -> Option<BatchJob> {
    let number = |name: &str| variable(name).and_then(|text| text.trim().parse::<u64>().ok());
    let first = |names: &[&str]| names.iter().find_map(|name| number(name));
    let gpus = || {
        ["SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES"].iter().find_map(|name| variable(name))
    };
    if let Some(id) = variable("SLURM_JOB_ID") {
        let cores = first(&["SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"]);
        // In megabytes; of each processor, or of the node.
        let of_cores =
            number("SLURM_MEM_PER_CPU").zip(number("SLURM_CPUS_ON_NODE").or(cores)).map(|(m, n)| m * n);
        return Some(BatchJob {
            system: "Slurm",
            id: variable("SLURM_ARRAY_JOB_ID").unwrap_or(id),
            task: number("SLURM_ARRAY_TASK_ID").map(|task| (task, number("SLURM_ARRAY_TASK_COUNT"))),
            nodes: first(&["SLURM_JOB_NUM_NODES", "SLURM_NNODES"]),
            ranks: first(&["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"]),
            cores,
            memory: number("SLURM_MEM_PER_NODE").filter(|m| *m > 0).or(of_cores).map(|m| m << 20),
            gpus: gpus(),
            left: number("SLURM_JOB_END_TIME").map(|end| end.saturating_sub(now)),
            restarts: number("SLURM_RESTART_COUNT").unwrap_or(0),
        });
    }
    if let Some(id) = variable("PBS_JOBID") {
        let hosts = variable("PBS_NODEFILE").and_then(|name| file(&name));
        let distinct = hosts.map(|text| text.lines().collect::<std::collections::BTreeSet<_>>().len() as u64);
        return Some(BatchJob {
            system: "PBS",
            id,
            task: first(&["PBS_ARRAY_INDEX", "PBS_ARRAYID"]).map(|task| (task, None)),
            nodes: distinct.or(number("PBS_NUM_NODES")),
            ranks: None,
            cores: first(&["NCPUS", "PBS_NUM_PPN", "PBS_NP"]),
            memory: None,
            gpus: gpus(),
            left: None,
            restarts: 0,
        });
    }
    if let Some(id) = variable("LSB_JOBID") {
        let hosts = variable("LSB_MCPU_HOSTS").map(|text| text.split_whitespace().count() as u64 / 2);
        return Some(BatchJob {
            system: "LSF",
            id,
            task: number("LSB_JOBINDEX")
                .filter(|task| *task > 0)
                .map(|task| (task, number("LSB_JOBINDEX_END"))),
            nodes: hosts,
            ranks: None,
            cores: number("LSB_DJOB_NUMPROC"),
            memory: None,
            gpus: gpus(),
            left: None,
            restarts: u64::from(variable("LSB_RESTART").is_some_and(|said| said == "Y")),
        });
    }
    // `JOB_ID` alone may be anybody's.
    let id =
        variable("JOB_ID").filter(|_| variable("SGE_ROOT").is_some() || variable("SGE_TASK_ID").is_some())?;
    let last = number("SGE_TASK_LAST")
        .zip(first(&["SGE_TASK_FIRST"]))
        .map(|(last, first)| last.saturating_sub(first) + 1);
    Some(BatchJob {
        system: "Grid Engine",
        id,
        task: number("SGE_TASK_ID").map(|task| (task, last)),
        nodes: number("NHOSTS"),
        ranks: None,
        cores: number("NSLOTS"),
        memory: None,
        gpus: variable("SGE_HGR_gpu").or_else(gpus),
        left: None,
        restarts: number("RESTARTED").unwrap_or(0).min(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<BatchJob> {
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        };
        let hosts = |name: &str| (name == "/nodes").then(|| "a\na\nb\n".to_string());
        read(&find, &hosts, 1_000)
    }

    #[test]
    fn jobs_of_four_systems() {
        assert_eq!(of(&[("HOME", "/"), ("JOB_ID", "7")]), None);
        let slurm = [
            ("SLURM_JOB_ID", "12"),
            ("SLURM_ARRAY_JOB_ID", "9"),
            ("SLURM_ARRAY_TASK_ID", "4"),
            ("SLURM_ARRAY_TASK_COUNT", "10"),
            ("SLURM_JOB_NUM_NODES", "1"),
            ("SLURM_NTASKS", "2"),
            ("SLURM_CPUS_PER_TASK", "8"),
            ("SLURM_CPUS_ON_NODE", "16"),
            ("SLURM_MEM_PER_CPU", "1024"),
            ("SLURM_JOB_GPUS", "0,1"),
            ("SLURM_JOB_END_TIME", "4600"),
            ("SLURM_RESTART_COUNT", "1"),
        ];
        let expected = BatchJob {
            system: "Slurm",
            id: "9".into(),
            task: Some((4, Some(10))),
            nodes: Some(1),
            ranks: Some(2),
            cores: Some(8),
            memory: Some(16 << 30),
            gpus: Some("0,1".into()),
            left: Some(3600),
            restarts: 1,
        };
        assert_eq!(of(&slurm), Some(expected));
        let whole = of(&[("SLURM_JOB_ID", "3"), ("SLURM_MEM_PER_NODE", "2048")]).unwrap();
        assert_eq!((whole.memory, whole.task, whole.restarts), (Some(2 << 30), None, 0));

        let pbs = of(&[
            ("PBS_JOBID", "5.host"),
            ("NCPUS", "4"),
            ("PBS_NODEFILE", "/nodes"),
            ("PBS_ARRAY_INDEX", "2"),
        ]);
        let expected = BatchJob {
            system: "PBS",
            id: "5.host".into(),
            task: Some((2, None)),
            nodes: Some(2),
            cores: Some(4),
            ..BatchJob::default()
        };
        assert_eq!(pbs, Some(expected));

        let lsf = [
            ("LSB_JOBID", "6"),
            ("LSB_JOBINDEX", "0"),
            ("LSB_DJOB_NUMPROC", "8"),
            ("LSB_MCPU_HOSTS", "a 4 b 4"),
            ("LSB_RESTART", "Y"),
        ];
        let expected = BatchJob {
            system: "LSF",
            id: "6".into(),
            nodes: Some(2),
            cores: Some(8),
            restarts: 1,
            ..BatchJob::default()
        };
        assert_eq!(of(&lsf), Some(expected));

        let sge = [
            ("JOB_ID", "7"),
            ("SGE_TASK_ID", "undefined"),
            ("NSLOTS", "3"),
            ("NHOSTS", "1"),
            ("RESTARTED", "0"),
        ];
        let expected = BatchJob {
            system: "Grid Engine",
            id: "7".into(),
            nodes: Some(1),
            cores: Some(3),
            ..BatchJob::default()
        };
        assert_eq!(of(&sge), Some(expected));
    }
}
