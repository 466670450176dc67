//! Names, numbers and types of the fields of OTLP's messages, as far as they are kept.

/// A message.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) fields: &'static [Field],
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    /// In snake case; JSON may have it in lower camel case as well.
    pub(super) name: &'static str,
    pub(super) number: u32,
    pub(super) kind: Kind,
}

/// How a field is written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Message(&'static Schema),
    Messages(&'static Schema),
    /// A message whose values may hold further ones of its kind: the only way for a request to nest without end.
    Nesting(&'static Schema),
    Text,
    Texts,
    /// Base64.
    Bytes,
    /// So many bytes in hex, as OTLP demands, or in base64, as plain protobuf JSON has them.
    Id(usize),
    Bool,
    Int32,
    Int64,
    /// An integer or, where it is too large for 64 bits, a double under this number: languages without integers write large
    /// numbers so.
    Int64OrDouble(u32),
    Uint32,
    Uint64,
    Fixed32,
    Fixed64,
    Double,
    /// A number or one of these names.
    Enum(&'static [(&'static str, i32)]),
    PackedInt32,
    PackedInt64,
    PackedFixed64,
}

impl Schema {
    /// The field that a JSON key names: underscores and case do not count, which covers both spellings.
    pub(super) fn field(&self, key: &str) -> Option<&'static Field> {
        let letters = |text: &'static str| text.bytes().filter(|byte| *byte != b'_');
        let wanted = || key.bytes().filter(|byte| *byte != b'_').map(|byte| byte.to_ascii_lowercase());
        self.fields.iter().find(|field| letters(field.name).eq(wanted()))
    }
}

const fn field(name: &'static str, number: u32, kind: Kind) -> Field {
    Field { name, number, kind }
}

use Kind::*;

/// Any message of which nothing is kept.
pub(super) static UNREAD: Schema = Schema { fields: &[] };

pub(super) static TRACES: Schema = Schema { fields: &[field("resource_spans", 1, Messages(&RESOURCE_SPANS))] };

static RESOURCE_SPANS: Schema = Schema {
    fields: &[
        field("resource", 1, Message(&RESOURCE)),
        field("scope_spans", 2, Messages(&SCOPE_SPANS)),
        field("schema_url", 3, Text),
    ],
};

static SCOPE_SPANS: Schema = Schema {
    fields: &[field("scope", 1, Message(&SCOPE)), field("spans", 2, Messages(&SPAN)), field("schema_url", 3, Text)],
};

static SPAN: Schema = Schema {
    fields: &[
        field("trace_id", 1, Id(16)),
        field("span_id", 2, Id(8)),
        field("trace_state", 3, Text),
        field("parent_span_id", 4, Id(8)),
        field("name", 5, Text),
        field("kind", 6, Enum(SPAN_KINDS)),
        field("start_time_unix_nano", 7, Fixed64),
        field("end_time_unix_nano", 8, Fixed64),
        field("attributes", 9, Messages(&KEY_VALUE)),
        field("dropped_attributes_count", 10, Uint32),
        field("events", 11, Messages(&EVENT)),
        field("dropped_events_count", 12, Uint32),
        field("links", 13, Messages(&SPAN_LINK)),
        field("dropped_links_count", 14, Uint32),
        field("status", 15, Message(&STATUS)),
        field("flags", 16, Fixed32),
    ],
};

static SPAN_KINDS: &[(&str, i32)] = &[
    ("SPAN_KIND_UNSPECIFIED", 0),
    ("SPAN_KIND_INTERNAL", 1),
    ("SPAN_KIND_SERVER", 2),
    ("SPAN_KIND_CLIENT", 3),
    ("SPAN_KIND_PRODUCER", 4),
    ("SPAN_KIND_CONSUMER", 5),
];

static EVENT: Schema = Schema {
    fields: &[
        field("time_unix_nano", 1, Fixed64),
        field("name", 2, Text),
        field("attributes", 3, Messages(&KEY_VALUE)),
        field("dropped_attributes_count", 4, Uint32),
    ],
};

static SPAN_LINK: Schema = Schema {
    fields: &[
        field("trace_id", 1, Id(16)),
        field("span_id", 2, Id(8)),
        field("trace_state", 3, Text),
        field("attributes", 4, Messages(&KEY_VALUE)),
        field("dropped_attributes_count", 5, Uint32),
        field("flags", 6, Fixed32),
    ],
};

static STATUS: Schema = Schema { fields: &[field("message", 2, Text), field("code", 3, Enum(STATUS_CODES))] };

static STATUS_CODES: &[(&str, i32)] = &[("STATUS_CODE_UNSET", 0), ("STATUS_CODE_OK", 1), ("STATUS_CODE_ERROR", 2)];

static RESOURCE: Schema = Schema {
    fields: &[
        field("attributes", 1, Messages(&KEY_VALUE)),
        field("dropped_attributes_count", 2, Uint32),
        field("entity_refs", 3, Messages(&ENTITY_REF)),
    ],
};

static ENTITY_REF: Schema = Schema {
    fields: &[
        field("schema_url", 1, Text),
        field("type", 2, Text),
        field("id_keys", 3, Texts),
        field("description_keys", 4, Texts),
    ],
};

static SCOPE: Schema = Schema {
    fields: &[
        field("name", 1, Text),
        field("version", 2, Text),
        field("attributes", 3, Messages(&KEY_VALUE)),
        field("dropped_attributes_count", 4, Uint32),
    ],
};

static KEY_VALUE: Schema = Schema {
    fields: &[field("key", 1, Text), field("value", 2, Message(&ANY_VALUE)), field("key_strindex", 3, Int32)],
};

static ANY_VALUE: Schema = Schema {
    fields: &[
        field("string_value", 1, Text),
        field("bool_value", 2, Bool),
        field("int_value", 3, Int64OrDouble(4)),
        field("double_value", 4, Double),
        field("array_value", 5, Nesting(&ARRAY_VALUE)),
        field("kvlist_value", 6, Nesting(&KEY_VALUE_LIST)),
        field("bytes_value", 7, Bytes),
        field("string_value_strindex", 8, Int32),
    ],
};

static ARRAY_VALUE: Schema = Schema { fields: &[field("values", 1, Messages(&ANY_VALUE))] };
static KEY_VALUE_LIST: Schema = Schema { fields: &[field("values", 1, Messages(&KEY_VALUE))] };

/// Profiles, in the numbering of v1.10; names that earlier versions had are understood too.
pub(super) static PROFILES: Schema = Schema {
    fields: &[
        field("resource_profiles", 1, Messages(&RESOURCE_PROFILES)),
        field("dictionary", 2, Message(&DICTIONARY)),
    ],
};

static RESOURCE_PROFILES: Schema = Schema {
    fields: &[
        field("resource", 1, Message(&RESOURCE)),
        field("scope_profiles", 2, Messages(&SCOPE_PROFILES)),
        field("schema_url", 3, Text),
    ],
};

static SCOPE_PROFILES: Schema = Schema {
    fields: &[
        field("scope", 1, Message(&SCOPE)),
        field("profiles", 2, Messages(&PROFILE)),
        field("schema_url", 3, Text),
    ],
};

static PROFILE: Schema = Schema {
    fields: &[
        field("sample_type", 1, Message(&VALUE_TYPE)),
        field("samples", 2, Messages(&SAMPLE)),
        field("sample", 2, Messages(&SAMPLE)),
        field("time_unix_nano", 3, Fixed64),
        field("duration_nano", 4, Uint64),
        field("period_type", 5, Message(&VALUE_TYPE)),
        field("period", 6, Int64),
        field("profile_id", 7, Id(16)),
        field("dropped_attributes_count", 8, Uint32),
        field("original_payload_format", 9, Text),
        field("original_payload", 10, Bytes),
        field("attribute_indices", 11, PackedInt32),
    ],
};

static VALUE_TYPE: Schema = Schema { fields: &[field("type_strindex", 1, Int32), field("unit_strindex", 2, Int32)] };

static SAMPLE: Schema = Schema {
    fields: &[
        field("stack_index", 1, Int32),
        field("attribute_indices", 2, PackedInt32),
        field("link_index", 3, Int32),
        field("values", 4, PackedInt64),
        field("value", 4, PackedInt64),
        field("timestamps_unix_nano", 5, PackedFixed64),
    ],
};

static DICTIONARY: Schema = Schema {
    fields: &[
        field("mapping_table", 1, Messages(&MAPPING)),
        field("location_table", 2, Messages(&LOCATION)),
        field("function_table", 3, Messages(&FUNCTION)),
        field("link_table", 4, Messages(&PROFILE_LINK)),
        field("string_table", 5, Texts),
        field("attribute_table", 6, Messages(&KEY_VALUE_AND_UNIT)),
        field("stack_table", 7, Messages(&STACK)),
    ],
};

static MAPPING: Schema = Schema {
    fields: &[
        field("memory_start", 1, Uint64),
        field("memory_limit", 2, Uint64),
        field("file_offset", 3, Uint64),
        field("filename_strindex", 4, Int32),
        field("attribute_indices", 5, PackedInt32),
    ],
};

static LOCATION: Schema = Schema {
    fields: &[
        field("mapping_index", 1, Int32),
        field("address", 2, Uint64),
        field("lines", 3, Messages(&LINE)),
        field("line", 3, Messages(&LINE)),
        field("attribute_indices", 4, PackedInt32),
    ],
};

static LINE: Schema =
    Schema { fields: &[field("function_index", 1, Int32), field("line", 2, Int64), field("column", 3, Int64)] };

static FUNCTION: Schema = Schema {
    fields: &[
        field("name_strindex", 1, Int32),
        field("system_name_strindex", 2, Int32),
        field("filename_strindex", 3, Int32),
        field("start_line", 4, Int64),
    ],
};

static PROFILE_LINK: Schema = Schema { fields: &[field("trace_id", 1, Id(16)), field("span_id", 2, Id(8))] };

static KEY_VALUE_AND_UNIT: Schema = Schema {
    fields: &[
        field("key_strindex", 1, Int32),
        field("value", 2, Message(&ANY_VALUE)),
        field("unit_strindex", 3, Int32),
    ],
};

static STACK: Schema = Schema { fields: &[field("location_indices", 1, PackedInt32)] };
