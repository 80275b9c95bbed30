//! Checks that LLVM and MLIR 22 are there before MLIR's own build scripts fail less clearly.

use std::{env, path::Path, path::PathBuf, process::Command};

const PREFIX: &str = "LLVM_SYS_220_PREFIX";
const PACKAGES: &str = "libmlir-22-dev llvm-22-dev mlir-22-tools libpolly-22-dev libclang1-22 \
                        libclang-common-22-dev zlib1g-dev libzstd-dev libxml2-dev libz3-dev";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={PREFIX}");
    let prefix = PathBuf::from(env::var_os(PREFIX).unwrap_or_else(|| "/usr/lib/llvm-22".into()));
    if let Err(what) = check(&prefix) {
        println!("cargo:error={what}; on Debian: apt-get install {PACKAGES}");
        std::process::exit(1);
    }
    // Nothing but what the library declares leaves it, and nothing that it does not use enters.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--gc-sections");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
}

fn check(prefix: &Path) -> Result<(), String> {
    let config = prefix.join("bin/llvm-config");
    let output = Command::new(&config).arg("--version").output();
    let output =
        output.map_err(|error| format!("LLVM 22 is missing: {}: {error}", config.display()))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !version.starts_with("22.") {
        return Err(format!("LLVM 22 is needed, {} is {version}", config.display()));
    }
    let archive = prefix.join("lib/libMLIRIR.a");
    if !archive.exists() {
        return Err(format!("MLIR 22 is missing: {} does not exist", archive.display()));
    }
    Ok(())
}
