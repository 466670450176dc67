//! What there is: profile types, labels and series. Times are milliseconds since 1970.

use super::schema::messages;

messages! {
    ProfileTypesRequest { 1 start: int64, 2 end: int64 }

    ProfileTypesResponse { 1 profile_types: many ProfileTypeMessage }

    ProfileTypeMessage {
        1 id: profile_id,
        2 name: text,
        4 sample_type: text,
        5 sample_unit: text,
        6 period_type: text,
        7 period_unit: text,
    }

    LabelValuesRequest { 1 name: text, 2 matchers: texts, 3 start: int64, 4 end: int64 }

    LabelNamesRequest { 1 matchers: texts, 2 start: int64, 3 end: int64 }

    /// Names of labels, or values of one.
    NamesResponse { 1 names: texts }

    SeriesRequest { 1 matchers: texts, 2 label_names: texts, 3 start: int64, 4 end: int64 }

    SeriesResponse { 2 labels_set: many LabelsMessage }

    LabelsMessage { 1 labels: many LabelPair }

    LabelPair { 1 name: text, 2 value: text }

    EmptyMessage {}

    ProfileStatsResponse { 1 data_ingested: flag, 2 oldest_profile_time: int64, 3 newest_profile_time: int64 }
}
