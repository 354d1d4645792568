//! Compares what host and device agree on (`build/layouts.rs`), compiles the CUDA kernels into one binary that the
//! program embeds, where there is an nvcc; embeds none otherwise, lists the scripts that come with the program, and
//! notes the commit.

#[path = "build/layouts.rs"]
mod layouts;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// The architectures to compile for, as nvcc's arguments: Ampere, Hopper, and PTX for what comes after; or only those
/// that `UMKLAPP_CUDA_ARCH` names, like `90` or `80,90`, in a half or a third of the time.
fn targets() -> Vec<String> {
    let one = |arch: &str, code: &str| format!("-gencode=arch=compute_{arch},code={code}_{arch}");
    let named = std::env::var("UMKLAPP_CUDA_ARCH").unwrap_or_default();
    if named.is_empty() {
        return vec![one("80", "sm"), one("90", "sm"), one("90", "compute")];
    }
    named.split(',').map(|arch| one(arch.trim(), "sm")).collect()
}

fn main() {
    for variable in ["NVCC", "CUDA_HOME", "PATH", "UMKLAPP_CUDA_ARCH"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    for place in ["kernels", "build", layouts::BACKEND].iter().chain(&layouts::OTHERS) {
        println!("cargo::rerun-if-changed={place}");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let image = out.join("kernels.fatbin");
    let header = header(&out);
    match nvcc() {
        Some(nvcc) => {
            println!("cargo::rerun-if-changed={}", nvcc.display());
            compile(&nvcc, &out, &header, &image);
        }
        None => std::fs::write(&image, []).expect("OUT_DIR can be written"),
    }
    std::fs::write(out.join("scripts.rs"), scripts()).expect("OUT_DIR can be written");
    if let Some(commit) = commit() {
        println!("cargo::rustc-env=UMKLAPP_GIT={commit}");
    }
}

/// The scripts that come with the program, as an array of places and texts. Each has a line in the index of its folder,
/// which is watched: the folder itself also holds what the scripts print.
fn scripts() -> String {
    let mut list = String::from("[\n");
    for folder in ["scripts", "examples"] {
        println!("cargo::rerun-if-changed={folder}/README.md");
        let entries = std::fs::read_dir(folder).expect("the folders of scripts can be read");
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".rhai")).collect();
        names.sort();
        for path in names.iter().map(|name| format!("{folder}/{name}")) {
            let text = format!("include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{path}\"))");
            list.push_str(&format!("    (\"{path}\", {text}),\n"));
        }
    }
    list + "]\n"
}

/// Writes the header that the kernels include; one that has not changed is left alone, and the objects with it.
fn header(out: &Path) -> PathBuf {
    let all = layouts::of_the_backend(Path::new(".")).and_then(|all| {
        let kernels = layouts::kernels(Path::new("."))?;
        layouts::compare(&all, &kernels)?;
        Ok(layouts::header(&all, &kernels))
    });
    let text = all.unwrap_or_else(|e| panic!("host and device differ: {e}"));
    let path = out.join("host.cuh");
    if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
        std::fs::write(&path, text).expect("OUT_DIR can be written");
    }
    path
}

/// The compiler: `NVCC` (`none` for none), that of `CUDA_HOME`, the first on the PATH, or the one that `.ci/nvcc`
/// installed.
///
/// Where there is none, cargo is to call this again once there is. It cannot be told of a file to come: one that is
/// missing counts as changed each time, and everything would be built anew. So it watches the folders that are there,
/// as far as they are flat, for it looks at all that is in them.
fn nvcc() -> Option<PathBuf> {
    let named = std::env::var_os("NVCC").map(PathBuf::from);
    if named.as_deref() == Some(Path::new("none")) {
        return None;
    }
    if let Some(named) = &named
        && !named.is_file()
    {
        panic!("NVCC is {}, which is no file", named.display());
    }
    let home = std::env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("bin/nvcc"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("nvcc"));
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let installed = cache.map(|cache| cache.join("umklapp/nvcc-13.0/nvidia/cu13/bin/nvcc"));
    let places: Vec<PathBuf> = named.into_iter().chain(home).chain(on_path).chain(installed).collect();
    let found = places.iter().find(|nvcc| nvcc.is_file()).cloned();
    if found.is_none() {
        for folder in places.iter().filter_map(|place| place.ancestors().skip(1).find(|a| a.is_dir())) {
            if is_flat(folder) {
                println!("cargo::rerun-if-changed={}", folder.display());
            }
        }
    }
    found
}

/// Whether nothing but files lies in a folder.
fn is_flat(folder: &Path) -> bool {
    let Ok(mut entries) = std::fs::read_dir(folder) else { return false };
    entries.all(|entry| entry.is_ok_and(|entry| !entry.path().is_dir()))
}

/// Compiles every `kernels/*.cu` and joins them; ptxas' spills are shown as warnings.
fn compile(nvcc: &Path, out: &Path, header: &Path, image: &Path) {
    let mut sources: Vec<PathBuf> = std::fs::read_dir("kernels")
        .expect("kernels/ can be read")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "cu"))
        .collect();
    sources.sort();
    // An object is kept if nothing that it was made of has changed: shared code, the options here, the compiler's
    // place.
    let shared = std::fs::read_dir("kernels").expect("kernels/ can be read");
    let shared = shared
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "cuh"));
    let common: Vec<PathBuf> = shared
        .chain(std::env::current_exe().ok())
        .chain([nvcc.to_path_buf(), header.to_path_buf()])
        .collect();
    let changed = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified()).ok();
    let (mut objects, mut waiting) = (Vec::new(), Vec::new());
    // Each choice of architectures has its folder.
    let targets = targets();
    let folder = out.join(targets.concat().replace(['-', '=', ','], ""));
    std::fs::create_dir_all(&folder).expect("OUT_DIR can be written");
    for source in &sources {
        let object = folder.join(source.with_extension("o").file_name().expect("a file"));
        let made = changed(&object);
        if made.is_some() && common.iter().chain([source]).all(|path| changed(path) < made) {
            objects.push(object);
            continue;
        }
        let mut command = Command::new(nvcc);
        command
            .args(["-O3", "-std=c++17", "-rdc=true", "-dc", "-Xptxas", "-v", "-I"])
            .arg(out)
            .args(&targets);
        // Under another name while it grows: a build that is stopped leaves no half of one.
        let growing = object.with_extension("part.o");
        command.arg("-o").arg(&growing).arg(source);
        waiting.push((command, source, growing, object.clone()));
        objects.push(object);
    }
    // As many at once as cargo builds crates.
    let jobs = std::env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let waiting = Mutex::new(waiting);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().expect("no other thread panics with it").pop();
                    let Some((mut command, source, growing, object)) = next else { return };
                    run(&mut command, source);
                    std::fs::rename(&growing, &object).expect("OUT_DIR can be written");
                }
            });
        }
    });
    // A source that was taken away changes the folder.
    let joined = folder.join("kernels.fatbin");
    let parts = objects.iter().map(PathBuf::as_path).chain([Path::new("kernels")]);
    let linked = changed(&joined);
    if linked.is_none() || parts.into_iter().any(|part| changed(part) >= linked) {
        let mut link = Command::new(nvcc);
        link.args(["-dlink", "--fatbin"]).args(&targets).arg("-o").arg(&joined).args(&objects);
        run(&mut link, &joined);
    }
    // One that has not changed is left alone, and the program that embeds it.
    if std::fs::read(image).ok() != std::fs::read(&joined).ok() {
        std::fs::copy(&joined, image).expect("OUT_DIR can be written");
    }
}

fn run(command: &mut Command, what: &Path) {
    let output = command.output().unwrap_or_else(|e| panic!("nvcc cannot be started: {e}"));
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        panic!("{} does not compile:\n{text}", what.display());
    }
    // A line for each source, with its worst kernel: every width and scalar type is a kernel of its own.
    let (mut kernel, mut spilling, mut worst) = ("", 0, (0, ""));
    for line in text.lines() {
        if let Some((_, name)) = line.split_once("Compiling entry function '") {
            kernel = name.split('\'').next().unwrap_or(name);
        }
        let stores = line.split_once(" bytes spill stores").and_then(|(before, _)| before.rsplit(' ').next());
        let bytes: u32 = stores.and_then(|n| n.parse().ok()).unwrap_or(0);
        spilling += u32::from(bytes > 0);
        worst = worst.max((bytes, kernel));
    }
    if spilling > 0 {
        let (bytes, kernel) = worst;
        println!(
            "cargo::warning={}: {spilling} kernels spill registers, {kernel} most ({bytes} bytes)",
            what.display()
        );
    }
}

/// The commit that is built, with a mark where files differ from it.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    // In a second working tree `.git` is no folder, and a file that is not there would have the kernels built every
    // time.
    println!("cargo::rerun-if-changed={}", git(&["rev-parse", "--git-path", "HEAD"])?);
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}+") })
}
