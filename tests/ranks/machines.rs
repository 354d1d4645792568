//! Two machines with a network between, which is cut: network namespaces of this one,
//! for which the tests must run as root.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::ends::{begun, ranks_of, until};
use super::{Place, launchers};
use crate::common::{Folder, Said};

/// The address of the first and of the second machine.
const ADDRESSES: [&str; 2] = ["10.99.7.1", "10.99.7.2"];

fn ip(words: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(words.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Two namespaces, which go away with the value.
struct Machines([String; 2]);

impl Machines {
    fn new() -> Option<Machines> {
        let id = std::process::id();
        let machines = Machines([format!("umk{id}a"), format!("umk{id}b")]);
        let [a, b] = &machines.0;
        let mut orders = vec![
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("link add one netns {a} type veth peer name two netns {b}"),
        ];
        for ((name, address), line) in machines.0.iter().zip(ADDRESSES).zip(["one", "two"]) {
            orders.push(format!("-n {name} addr add {address}/24 dev {line}"));
            orders.push(format!("-n {name} link set lo up"));
            orders.push(format!("-n {name} link set {line} up"));
        }
        orders.iter().all(|order| ip(order)).then_some(machines)
    }

    fn set(&self, state: &str) {
        assert!(ip(&format!("-n {} link set one {state}", self.0[0])));
    }
}

impl Machines {
    fn are_joined(&self) -> bool {
        self.0.iter().zip(["one", "two"]).all(|(name, line)| {
            let shown = Command::new("ip").args(["-n", name, "-o", "link", "show", "dev", line]).output();
            shown.is_ok_and(|shown| String::from_utf8_lossy(&shown.stdout).contains("state UP"))
        })
    }
}

impl Machines {
    /// Ends what runs there.
    fn clear(&self) {
        for name in &self.0 {
            let there = Command::new("ip").args(["netns", "pids", name]).output();
            let text =
                there.map(|there| String::from_utf8_lossy(&there.stdout).into_owned()).unwrap_or_default();
            for number in text.split_whitespace().filter_map(|word| word.parse().ok()) {
                let _ = nix::sys::signal::kill(
                    nix::unistd::Pid::from_raw(number),
                    nix::sys::signal::Signal::SIGKILL,
                );
            }
        }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        self.clear();
        for name in &self.0 {
            ip(&format!("netns del {name}"));
        }
    }
}

#[test]
fn a_network_that_is_cut_ends_all_ranks() {
    let Some(machines) = Machines::new() else {
        eprintln!("skipped: no network namespaces can be made here");
        return;
    };
    let [a, b] = &machines.0;
    let script = format!("cut-{}.rhai", std::process::id());
    // In place of a remote shell: options, the machine, the command.
    let shell = format!(
        "#!/bin/sh\nwhile [ \"${{1#-}}\" != \"$1\" ]; do shift; done\n\
         case $1 in {}) machine={a};; *) machine={b};; esac\nshift\n\
         exec ip netns exec $machine unshare --uts sh -c \"hostname there; $*\"\n",
        ADDRESSES[0]
    );
    for (at, launcher) in launchers().iter().enumerate() {
        let place = Place(
            Folder::new(&format!("cut-{at}"))
                .with(
                    &script,
                    "let h = tight_binding(lattice::cubic(12, 12, 12), #{ hopping: -1.0 });
                 let first = kpm::moments(h, #{ moments: 8, vectors: 2, seed: 1, progress: false });
                 write_text(\"ready\", \"\");
                 loop { kpm::moments(h, #{ moments: 512, vectors: 2, seed: 1, progress: false }); }",
                )
                .with("shell", &shell)
                .with("hydra", &format!("{}:1\n{}:2\n", ADDRESSES[0], ADDRESSES[1]))
                .with("open", &format!("{} slots=1\n{} slots=2\n", ADDRESSES[0], ADDRESSES[1])),
        );
        let file = |name: &str| place.0.join(name).to_str().unwrap().to_string();
        std::fs::set_permissions(file("shell"), PermissionsExt::from_mode(0o755)).unwrap();
        machines.set("up");
        // Libraries take no network whose ends have not found each other yet, which takes a moment.
        until("the network is there", || machines.are_joined());
        let args = ["run", &script, "--ranks", "3", "--threads", "1", "--share-from", "0"];
        let own = place.command(launcher, &args);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", a]).arg(own.get_program()).args(own.get_args());
        command.current_dir(own.get_current_dir().unwrap());
        for (name, value) in own.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        for (name, value) in [
            ("HYDRA_HOST_FILE", file("hydra")),
            ("HYDRA_LAUNCHER", "ssh".into()),
            ("HYDRA_LAUNCHER_EXEC", file("shell")),
            ("HYDRA_IFACE", "one".into()),
            ("OMPI_MCA_orte_default_hostfile", file("open")),
            ("OMPI_MCA_plm_rsh_agent", file("shell")),
            ("PRTE_MCA_prte_default_hostfile", file("open")),
            ("PRTE_MCA_plm_ssh_agent", file("shell")),
            // Namespaces share memory, which libraries find.
            ("UCX_TLS", "tcp,self".into()),
            ("FI_PROVIDER", "tcp".into()),
            ("OMPI_MCA_pml", "ob1".into()),
            ("OMPI_MCA_btl", "tcp,self".into()),
        ] {
            command.env(name, value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = begun(command, || place.0.join("ready").exists() && ranks_of(&script).len() == 3);
        machines.set("down");
        until("all end", || ranks_of(&script).is_empty());
        until("the starter ends", || child.try_wait().unwrap().is_some());
        // Launchers leave their own programs on a machine that they do not reach,
        // which hold the ends of what is read here.
        machines.clear();
        let said = Said::of(child.wait_with_output().unwrap());
        let told = said.err.matches("of 3, on `there`, cannot be reached any more").count();
        assert!(said.code == 1 && told == 1, "{said:?}");
    }
}
