//! The way of a context switch: two threads that wake each other through pipes, on one CPU.

use crate::clocks::process_cpu_ns;
use crate::paired::{Random, pair, summary};
use crate::toggled::{Hotspan, Nothing, Toggled};
use std::io::{Read, Write};

const ROUND_TRIPS: usize = 4_000;

/// CPU nanoseconds of the process per switch.
fn cost_of_switches(pipes: &mut (std::io::PipeWriter, std::io::PipeReader)) -> f64 {
    let before = process_cpu_ns();
    for _ in 0..ROUND_TRIPS {
        pipes.0.write_all(&[1]).unwrap();
        pipes.1.read_exact(&mut [0]).unwrap();
    }
    (process_cpu_ns() - before) as f64 / (2 * ROUND_TRIPS) as f64
}

/// Keeps the calling thread, and those that it starts from here on, on one CPU.
fn stay_on_one_cpu() {
    // SAFETY: the set is valid, and of the size that is said.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(usize::try_from(libc::sched_getcpu()).unwrap_or(0), &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Measures in pairs and prints: the profiler, and the negative control.
pub fn print(pairs: usize) {
    let mut toggled: [(&str, Box<dyn Toggled + Send>); 2] =
        [("hotspan-profiler, 100 Hz", Box::new(Hotspan::new(100))), ("negative control", Box::new(Nothing))];
    let measured = std::thread::spawn(move || {
        stay_on_one_cpu();
        let (questions, answers) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        let mut asked = questions.0;
        let mut reply = answers.1;
        let echoing = std::thread::spawn(move || {
            let mut byte = [0];
            while asked.read_exact(&mut byte).is_ok() {
                reply.write_all(&byte).unwrap();
            }
        });
        let mut random = Random::with_seed(42);
        let mut pipes = (questions.1, answers.0);
        let mut costs = Vec::new();
        let mut ratios = [Vec::new(), Vec::new()];
        for _ in 0..pairs {
            for ((_, toggle), ratios) in toggled.iter_mut().zip(&mut ratios) {
                ratios.push(pair(toggle.as_mut(), &mut random, |_| {
                    costs.push(cost_of_switches(&mut pipes));
                    costs[costs.len() - 1]
                }));
            }
        }
        drop(pipes);
        echoing.join().unwrap();
        costs.sort_by(f64::total_cmp);
        println!("CPU time per context switch ({:.0} ns), on against off, {pairs} pairs each:", costs[costs.len() / 2]);
        for ((name, _), ratios) in toggled.iter().zip(&ratios) {
            println!("{name:>26}: {}", summary(ratios, &mut random));
        }
        println!();
    });
    measured.join().unwrap();
}
