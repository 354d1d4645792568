//! Jobs of batch systems: what the program says of them, results of several runs as one, runs that are begun anew.

use std::process::Command;

use crate::common::Folder;

struct Place(Folder);

/// Signs of a batch system that the tests themselves may run under.
const SIGNS: [&str; 8] = [
    "SLURM_JOB_ID",
    "PBS_JOBID",
    "LSB_JOBID",
    "JOB_ID",
    "SGE_TASK_ID",
    "SLURM_RESTART_COUNT",
    "SLURM_STEP_NUM_TASKS",
    "CUDA_VISIBLE_DEVICES",
];

impl Place {
    /// Exit code, standard output, standard error.
    fn run(&self, args: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_umklapp"));
        command.args(args).current_dir(&self.0).env("NO_COLOR", "1");
        for sign in SIGNS {
            command.env_remove(sign);
        }
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    fn script(&self, name: &str, text: &str) {
        self.0.file(name, text);
    }
}

#[test]
fn a_job_knows_what_it_was_given() {
    let place = Place(Folder::new("info"));
    let info = ["info", "--backend", "cpu", "--threads", "2"];
    let (code, said, _) = place.run(&info, &[]);
    assert!(code == 0 && !said.contains("\njob "), "{said}");
    let slurm = [
        ("SLURM_JOB_ID", "12"),
        ("SLURM_ARRAY_JOB_ID", "9"),
        ("SLURM_ARRAY_TASK_ID", "4"),
        ("SLURM_ARRAY_TASK_COUNT", "10"),
        ("SLURM_JOB_NUM_NODES", "1"),
        ("SLURM_CPUS_PER_TASK", "1"),
        ("SLURM_MEM_PER_NODE", "2000"),
        ("SLURM_JOB_GPUS", "0"),
        ("SLURM_JOB_END_TIME", "1"),
        ("SLURM_RESTART_COUNT", "2"),
    ];
    let (code, said, _) = place.run(&info, &slurm);
    let expected = "\njob       Slurm 9, task 4 of an array of 10, begun anew 2 times\n\
                    given     1 node, 1 core, 2.1 GB of memory, GPU 0\n\
                    left      nothing\n\
                    note      2 threads for 1 of the job: `--threads 1`\n";
    assert!(code == 0 && said.ends_with(expected), "{said}");
    let (_, said, _) =
        place.run(&info, &[("LSB_JOBID", "6"), ("LSB_MCPU_HOSTS", "a 4 b 4"), ("LSB_DJOB_NUMPROC", "8")]);
    assert!(said.ends_with("\njob       LSF 6\ngiven     2 nodes, 8 cores\n"), "{said}");
}

#[test]
fn an_array_of_jobs_becomes_one_result() {
    let place = Place(Folder::new("merge"));
    let script = "
        let disordered = |seed| tight_binding(lattice::square(8, 8), #{ disorder: 2.0, seed: seed });
        let o = #{ moments: 16, vectors: 2, seed: args.task, window: window(-5.5, 5.5), progress: false };
        kpm::moments(disordered.call(1), o).save(`mu_${args.task}.npz`);
        kpm::moments(disordered.call(4), o).save(`other_${args.task}.npz`);
        kpm::dos(disordered.call(args.task), o + #{ points: 4 }).save(`dos_${args.task}.csv`);
        table([[\"u\", [args.task]], [\"energy\", [0.5 * args.task]]]).save(`scan_${args.task}.json`);";
    place.script("part.rhai", script);
    for task in ["3", "1", "2"] {
        let (code, _, said) = place.run(&["run", "part.rhai", "--set", &format!("task={task}")], &[]);
        assert_eq!(code, 0, "{said}");
    }
    let merge = |args: &[&str]| place.run(&[&["merge"], args].concat(), &[]);
    let (code, said, _) = merge(&["mu.npz", "mu_1.npz", "mu_2.npz", "mu_3.npz"]);
    assert_eq!((code, said.as_str()), (0, "mu.npz: Moments: 16 of 6 vectors, dimension 64\n"));
    assert_eq!(merge(&["dos.csv", "dos_1.csv", "dos_2.csv", "dos_3.csv"]).0, 0);
    assert_eq!(merge(&["scan.json", "scan_3.json", "scan_1.json", "scan_2.json"]).0, 0);
    let look = "
        let one = |k| load(`mu_${k}.npz`);
        assert(load(\"mu.npz\").values == (one.call(1) + one.call(2) + one.call(3)).values, \"moments\");
        let runs = [1, 2, 3].map(|k| load(`dos_${k}.csv`));
        let dos = load(\"dos.csv\");
        assert(dos.columns == [\"energy\", \"density\", \"error\"], \"its columns\");
        for i in 0..4 {
            let each = series(runs.map(|run| run.density[i]));
            assert_close(dos.density[i], each.mean(), 1e-15);
            // 1.32 standard errors of three: p sqrt(2/(1 - p^2)) with p = 0.6827.
            let spread = sqrt(((each - each.mean()) ** 2).sum() / 6.0);
            assert_close(dos.error[i], 1.3212774 * spread, 1e-6 * spread);
        }
        print(load(\"scan.json\").u);";
    place.script("look.rhai", look);
    let (code, said, wrong) = place.run(&["run", "look.rhai"], &[]);
    assert_eq!((code, said.as_str()), (0, "Series of 3: 1.0, 2.0, 3.0\n"), "{wrong}");

    // What does not belong together, by the names of files.
    let refused = |args: &[&str], words: &[&str]| {
        let (code, said, wrong) = merge(args);
        assert!(
            code == 1 && said.is_empty() && words.iter().all(|word| wrong.contains(word)),
            "{args:?}: {wrong}"
        );
        assert!(wrong.contains("hint"), "{wrong}");
    };
    refused(&["dos_1.csv", "dos_2.csv"], &["`dos_1.csv` is there already", "--force"]);
    refused(
        &["x.npz", "mu_1.npz", "mu_2.npz", "mu_1.npz"],
        &["mu_1.npz and mu_1.npz: both have a vector in common"],
    );
    // Averages over disorder are those of tables.
    let others =
        ["mu_1.npz and other_2.npz: moments of different operators", "`merge` averages realisations"];
    refused(&["x.npz", "mu_1.npz", "other_2.npz"], &others);
    refused(&["x.csv", "dos_1.csv", "dos_1.csv"], &["hold the same numbers", "seed"]);
    refused(&["x.csv", "dos_1.csv", "scan_1.json"], &["scan_1.json has u, energy"]);
    refused(&["x.csv", "dos_1.csv", "mu_1.npz"], &["dos_1.csv holds a Table, and mu_1.npz holds"]);
    refused(&["x.csv", "none.csv"], &["none.csv"]);
    assert!(!place.0.join("x.csv").exists() && !place.0.join("x.npz").exists());
    assert_eq!(merge(&["x.csv"]).0, 2, "no runs");
}

#[test]
fn a_job_that_is_begun_anew_goes_on() {
    let place = Place(Folder::new("anew"));
    let script = "
        let h = tight_binding(lattice::chain(64), #{ hopping: -1.0 });
        let mu = kpm::moments(h, #{ moments: 32, vectors: args.vectors, seed: 1, checkpoint: \"mu.npz\", progress: \
        false });
        print(mu.vectors);";
    place.script("run.rhai", script);
    let again = [("SLURM_JOB_ID", "12"), ("SLURM_RESTART_COUNT", "1")];
    let run = |n: &str, variables: &[(&str, &str)]| {
        place.run(&["run", "run.rhai", "--set", n, "--backend", "cpu"], variables)
    };
    let (code, said, told) = run("vectors=2", &again);
    assert_eq!((code, said.as_str()), (0, "2\n"));
    assert_eq!(told, "note: Slurm 12 was begun anew: there is no `mu.npz` yet, the run begins anew\n");
    let (_, said, told) = run("vectors=4", &again);
    assert_eq!(
        (said.as_str(), told.as_str()),
        ("4\n", "note: Slurm 12 was begun anew: the run goes on from `mu.npz`\n")
    );
    assert_eq!(run("vectors=6", &[]).2, "note: the run goes on from `mu.npz`\n");
    let (_, _, quiet) = place.run(&["run", "run.rhai", "--set", "vectors=6", "--quiet"], &again);
    assert_eq!(quiet, "");
}

#[test]
fn the_scripts_for_clusters_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/batch");
    let place = Place(Folder::new("examples"));
    let script = folder.join("dos.rhai");
    let args = |task: &'static str| ["run", script.to_str().unwrap(), "--set", task, "--set", "size=16"];
    for task in ["task=1", "task=2"] {
        let (code, said, wrong) = place.run(&args(task), &[]);
        assert!(code == 0 && said.contains("8 vectors"), "{wrong}");
    }
    assert_eq!(place.run(&["merge", "dos.csv", "dos_1.csv", "dos_2.csv"], &[]).0, 0);
    // The shell reads every job script; what they call is a command of this program.
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "sbatch") {
            assert!(
                Command::new("bash").arg("-n").arg(&path).status().unwrap().success(),
                "{}",
                path.display()
            );
        }
    }
}
