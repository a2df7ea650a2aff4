//! Notes the compiler's version for the record.

use std::env;
use std::process::Command;

fn main() {
    let compiler = env::var("RUSTC").expect("cargo sets RUSTC");
    let told = Command::new(compiler).arg("--version").output().expect("rustc runs");
    let text = String::from_utf8(told.stdout).expect("rustc writes UTF-8");
    let version = text.split(' ').nth(1).expect("`rustc VERSION (...)`");
    println!("cargo::rustc-env=RUSTC_VERSION={version}");
    println!("cargo::rerun-if-changed=build.rs");
}
