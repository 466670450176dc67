//! Flags of the command line, made from the table of keys.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use hotspan_server::config::{KEYS, Key};

use super::sources::{Defaults, Given};

const CONFIG: &str = "config";

/// `--config` and the flag of every key that has one.
#[derive(Debug)]
pub(crate) struct ConfigFlags(Given);

/// `--config` and `--store`, for commands that need to find the store and nothing else.
#[derive(Debug)]
pub(crate) struct StoreFlags(Given);

/// The flags of `serve` with the defaults of the demo, which keeps its data apart.
#[derive(Debug)]
pub(crate) struct DemoFlags(Given);

/// Where the demo keeps its data unless told otherwise.
pub(crate) const DEMO_STORE: &str = ".hotspan";

/// A store of its own, and a quieter log than a server's: the demo is for people.
const DEMO_DEFAULTS: &[(&str, &str)] =
    &[("store", DEMO_STORE), ("log.level", "warn,sqlx=error"), ("log.format", "text")];

impl From<DemoFlags> for Given {
    fn from(flags: DemoFlags) -> Self {
        flags.0
    }
}

impl From<ConfigFlags> for Given {
    fn from(flags: ConfigFlags) -> Self {
        flags.0
    }
}

impl From<StoreFlags> for Given {
    fn from(flags: StoreFlags) -> Self {
        flags.0
    }
}

fn any_key(_: &Key) -> bool {
    true
}

fn is_store(key: &Key) -> bool {
    key.name == "store"
}

fn add(command: Command, wanted: fn(&Key) -> bool, defaults: Defaults) -> Command {
    let config = Arg::new(CONFIG)
        .long(CONFIG)
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help("TOML file with the configuration [env: HOTSPAN_CONFIG] [default: hotspan.toml, if it is there]");
    let mut command = command.arg(config);
    for key in KEYS.iter().filter(|key| wanted(key)) {
        let Some(flag) = key.flag else { continue };
        let default = defaults.iter().find(|(name, _)| *name == key.name);
        let default = default.map_or_else(|| key.default_text(), |(_, text)| (*text).to_owned());
        let help = format!("{} [env: {}] [default: {default}]", key.doc, key.variable());
        command = command.arg(Arg::new(flag).long(flag).value_name(key.kind().placeholder()).help(help));
    }
    command
}

fn read(matches: &ArgMatches, wanted: fn(&Key) -> bool, defaults: Defaults) -> Given {
    let with_flag = KEYS.iter().filter(|key| wanted(key)).filter_map(|key| Some((key, key.flag?)));
    let values = with_flag.filter_map(|(key, flag)| Some((key, matches.get_one::<String>(flag)?.clone())));
    Given { file: matches.get_one::<PathBuf>(CONFIG).cloned(), values: values.collect(), defaults }
}

macro_rules! impl_arguments {
    ($flags:ident, $wanted:expr, $defaults:expr) => {
        impl Args for $flags {
            fn augment_args(command: Command) -> Command {
                add(command, $wanted, $defaults)
            }

            fn augment_args_for_update(command: Command) -> Command {
                add(command, $wanted, $defaults)
            }
        }

        impl FromArgMatches for $flags {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self(read(matches, $wanted, $defaults)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                self.0 = read(matches, $wanted, $defaults);
                Ok(())
            }
        }
    };
}

impl_arguments!(ConfigFlags, any_key, &[]);
impl_arguments!(StoreFlags, is_store, &[]);
impl_arguments!(DemoFlags, any_key, DEMO_DEFAULTS);
