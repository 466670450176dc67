//! Reads a profile of any format and writes its first profile, or the one called by the third argument, as another.
//!
//! `cargo run -p hotspan-formats --example convert -- FILE text|top|svg|collapsed|speedscope|flamebearer|dot|pprof [TYPE]`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is what an example is for")]

use std::io::Write as _;

use hotspan_formats::flamebearer::FlamebearerProfile;
use hotspan_formats::profile_tree::flame_tree;
use hotspan_formats::svg::{SvgOptions, flame_svg};
use hotspan_formats::text_flame::{TextFlameOptions, text_flame};
use hotspan_formats::{DecodeOptions, collapsed, decode_file, dot, pprof, speedscope, top_table};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, format, rest @ ..] = arguments.as_slice() else { return Err("a file and a format are needed".into()) };
    let bytes = std::fs::read(file)?;
    let set = decode_file(&bytes, &DecodeOptions::default())?;
    for profile in &set.profiles {
        eprintln!("{} ({} samples)", profile.profile_type, profile.samples.len());
    }
    let wanted = |profile: &&hotspan_model::Profile<'_>| {
        rest.first().is_none_or(|wanted| profile.profile_type.to_string().contains(wanted.as_str()))
    };
    let profile = set.profiles.iter().find(wanted).ok_or("no such profile")?;
    let (tree, unit) = (flame_tree(&set, [profile]), profile.profile_type.sample_unit.as_str());
    let text = match format.as_str() {
        "text" => text_flame(&tree, &TextFlameOptions { unit: unit.to_owned(), ..TextFlameOptions::default() }),
        "top" => top_table::top_text(&tree, unit, 20, None),
        "svg" => flame_svg(&tree, &SvgOptions { title: file.clone(), unit: unit.to_owned(), ..SvgOptions::default() }),
        "collapsed" => collapsed::encode(&tree),
        "speedscope" => speedscope::encode(&tree, file, unit),
        "flamebearer" => serde_json::to_string(&FlamebearerProfile::single(&tree, &profile.profile_type))?,
        "dot" => dot::encode(&tree, unit, 60),
        "pprof" => {
            std::io::stdout().write_all(&pprof::encode(&set))?;
            return Ok(());
        }
        other => return Err(format!("{other} is no format").into()),
    };
    println!("{text}");
    Ok(())
}
