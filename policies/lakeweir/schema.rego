# What becomes of a schema change where no organisation says otherwise. Each rule adds
# its answer to verdicts; the strictest counts, re-reads and warnings add up.
package lakeweir.schema

import data.lakeweir.pii

# --- columns that come -------------------------------------------------------------

verdicts contains {
	"verdict": "evolve",
	"rule": "column_added",
	"reason": sprintf("column %s is new: it comes to the lake as nullable; rows from before have NULL in it, or its default", [input.change.column]),
	"reread": input.change.rewrite == "values",
} if {
	input.change.kind == "column_added"
}

verdicts contains {
	"verdict": "hold",
	"rule": "column_added_or_renamed",
	"reason": sprintf("column %s went as %s came, with the same type, and the capture gives columns no numbers: it may be a rename, and then the lake's column should keep its past", [input.change.rename_of, input.change.column]),
	"mapping": "rename",
} if {
	input.change.kind == "column_added"
	input.change.rename_of != ""
}

verdicts contains {
	"verdict": "hold",
	"rule": "column_added_again",
	"reason": sprintf("column %s was dropped and is there again with another type: the lake's column of that name is %s, which cannot become %s", [input.change.column, input.change.lake_before, input.change.lake_after]),
	"mapping": "new_column",
} if {
	input.change.kind == "column_added"
	input.change.lake == "replaces"
}

verdicts contains {
	"verdict": "quarantine",
	"rule": "name_clash",
	"reason": sprintf("column %s is one with %s to some reader of the lake (its own columns, case, elements of lists): rename it at the source", [input.change.after.name, input.change.clash]),
} if {
	input.change.clash != ""
}

# --- personal data that nobody has classified ---------------------------------------

verdicts contains {
	"verdict": "quarantine",
	"rule": "pii_name",
	"reason": sprintf("column %s looks like personal data (%s) by its name, and the table's file does not classify it: name it under pii, or have it exempted (pii_exempt)", [input.change.after.name, concat(", ", categories)]),
} if {
	comes_to_the_lake
	not classified
	input.change.after.base != "bool"
	categories := pii.categories(input.change.after.name)
	count(categories) > 0
}

verdicts contains {
	"verdict": "quarantine",
	"rule": "pii_content",
	"reason": sprintf("the values of column %s look like personal data (%s), and the table's file does not classify it: name it under pii", [input.change.after.name, concat(", ", input.change.content)]),
} if {
	count(input.change.content) > 0
	not classified
}

verdicts contains {
	"verdict": "quarantine",
	"rule": "pii_renamed",
	"reason": sprintf("column %s is protected (%s) and is now called %s, which the table's file does not classify: its values would reach the lake in clear", [input.change.column, input.change.pii, input.change.after.name]),
} if {
	input.change.kind == "column_renamed"
	input.change.pii != ""
	not classified
}

classified if input.table.pii[input.change.after.name]

# A column gets a name, or values, that the lake has not seen before.
comes_to_the_lake if input.change.kind in {"column_added", "column_renamed"}

comes_to_the_lake if {
	input.change.kind == "generated_changed"
	not input.change.before.sent
	input.change.after.sent
}

# --- columns that go ---------------------------------------------------------------

verdicts contains {
	"verdict": "evolve",
	"rule": "column_dropped",
	"reason": sprintf("column %s is gone: the lake keeps it as nullable", [input.change.column]),
	"warnings": [sprintf("new rows have NULL in %s; who reads it is not told", [input.change.column])],
} if {
	goes
	count(roles) == 0
}

verdicts contains {
	"verdict": "quarantine",
	"rule": "column_dropped_in_use",
	"reason": sprintf("column %s is gone, and the table's file names it (%s): change the file first", [input.change.column, concat(", ", roles)]),
} if {
	goes
	count(roles) > 0
}

goes if input.change.kind == "column_dropped"

goes if {
	input.change.kind == "generated_changed"
	input.change.before.sent
	not input.change.after.sent
}

roles contains "primary_key" if input.change.key

roles contains "track_history_columns" if input.change.tracked

roles contains "pii" if input.change.pii != ""

# --- columns that stay -------------------------------------------------------------

verdicts contains {
	"verdict": "hold",
	"rule": "column_renamed",
	"reason": sprintf("column %s is now called %s: approved, the lake's column is renamed and keeps its id and its past%s", [input.change.column, input.change.after.name, in_file]),
	"mapping": "rename",
} if {
	input.change.kind == "column_renamed"
	in_file := sprintf("; write the new name in the table's file (%s)", [concat(", ", roles)])
	count(roles) > 0
}

verdicts contains {
	"verdict": "hold",
	"rule": "column_renamed",
	"reason": sprintf("column %s is now called %s: approved, the lake's column is renamed and keeps its id and its past", [input.change.column, input.change.after.name]),
	"mapping": "rename",
} if {
	input.change.kind == "column_renamed"
	count(roles) == 0
}

verdicts contains {
	"verdict": "evolve",
	"rule": "column_widened",
	"reason": sprintf("every %s is a %s, and the lake's %s", [input.change.before.type, input.change.after.type, lake_follows]),
	"reread": input.change.rewrite == "values",
	"warnings": unseen_conversion,
} if {
	input.change.kind == "column_widened"
}

lake_follows := "column stays as it is" if input.change.lake == "same"

lake_follows := sprintf("%s is promoted to %s", [input.change.lake_before, input.change.lake_after]) if input.change.lake == "promotes"

default unseen_conversion := []

unseen_conversion := [sprintf("whether a USING expression changed values of %s on the way is not known: reconcile the table", [input.change.column])] if {
	input.change.rewrite == "unknown"
}

verdicts contains {
	"verdict": "quarantine",
	"rule": "column_narrowed",
	"reason": sprintf("%s does not hold every %s: take the change back, or approve it; %s", [input.change.after.type, input.change.before.type, lake_after_narrowing]),
	"mapping": mapping,
	"reread": input.change.rewrite != "none",
} if {
	input.change.kind == "column_narrowed"
	mapping := {"same": "keep", "holds": "keep", "replaces": "new_column"}[input.change.lake]
}

lake_after_narrowing := "the lake's column would stay as it is" if input.change.lake in {"same", "holds"}

lake_after_narrowing := "the lake would get a new column" if input.change.lake == "replaces"

verdicts contains {
	"verdict": "hold",
	"rule": "column_retyped",
	"reason": sprintf("%s is %s in the lake, which cannot become %s: approved, values go to a new column, and the old one stays", [input.change.before.type, input.change.lake_before, input.change.lake_after]),
	"mapping": "new_column",
} if {
	input.change.kind == "column_retyped"
	input.change.lake == "replaces"
}

verdicts contains {
	"verdict": "hold",
	"rule": "column_retyped",
	"reason": sprintf("%s became %s, which has other values; the lake's %s would hold both", [input.change.before.type, input.change.after.type, input.change.lake_before]),
	"mapping": "keep",
	"reread": input.change.rewrite != "none",
} if {
	input.change.kind == "column_retyped"
	input.change.lake != "replaces"
}

verdicts contains {
	"verdict": "quarantine",
	"rule": "key_retyped",
	"reason": sprintf("column %s is part of the key, and the lake's rows are told apart by its values: read the table anew under the new key", [input.change.column]),
} if {
	input.change.kind in {"column_retyped", "column_narrowed"}
	input.change.key
}

verdicts contains {
	"verdict": "evolve",
	"rule": "nullability",
	"reason": "columns of the lake that are not part of the key are nullable whatever the source says",
} if {
	input.change.kind in {"nullability_relaxed", "nullability_tightened"}
}

verdicts contains {
	"verdict": "quarantine",
	"rule": "key_nullable",
	"reason": sprintf("column %s is part of the key and may be NULL now: a row without a key has no place in silver", [input.change.column]),
} if {
	input.change.kind == "nullability_relaxed"
	input.change.column in input.table.primary_key
}

verdicts contains {
	"verdict": "evolve",
	"rule": "default_changed",
	"reason": "a default concerns rows to come, and their values are sent",
} if {
	input.change.kind == "default_changed"
}

verdicts contains {
	"verdict": "evolve",
	"rule": "generated_changed",
	"reason": sprintf("column %s is computed in another way", [input.change.column]),
	"reread": input.change.rewrite == "values",
} if {
	input.change.kind == "generated_changed"
	not goes
}

# --- labels of an enum, which are texts in the lake ----------------------------------

verdicts contains {
	"verdict": "evolve",
	"rule": "enum_label_added",
	"reason": "the lake has an enum's values as texts",
} if {
	input.change.kind == "enum_label_added"
}

verdicts contains {
	"verdict": "evolve",
	"rule": "enum_label_renamed",
	"reason": sprintf("rows with the label %s show %s at the source from here on, without an event", [input.change.label, input.change.new_label]),
	"reread": true,
	"warnings": [sprintf("versions that were closed keep the label %s", [input.change.label])],
} if {
	input.change.kind == "enum_label_renamed"
}

verdicts contains {
	"verdict": "quarantine",
	"rule": "enum_label_removed",
	"reason": sprintf("the label %s is gone: what became of rows that had it is not told", [input.change.label]),
	"mapping": "keep",
	"reread": true,
} if {
	input.change.kind == "enum_label_removed"
}

# --- the table ---------------------------------------------------------------------

verdicts contains {
	"verdict": "quarantine",
	"rule": "key_changed",
	"reason": sprintf("the primary key was (%s) and is (%s): decide by which key the lake tells rows apart", [concat(", ", input.change.key_before), concat(", ", input.change.key_after)]),
} if {
	input.change.kind == "key_changed"
}

verdicts contains {
	"verdict": "evolve",
	"rule": "identity_changed",
	"reason": "old images still hold the configured key",
	"warnings": [w | input.change.identity_before == "full"; w := "rows that swap keys inside one transaction can no longer be told apart by their old images"],
} if {
	input.change.kind == "identity_changed"
	input.change.carries_key
}

verdicts contains {
	"verdict": "quarantine",
	"rule": "identity_without_key",
	"reason": sprintf("the replica identity is now %s, and old images no longer hold the configured key: updates and deletes would not say of which row", [input.change.identity_after]),
} if {
	input.change.kind == "identity_changed"
	not input.change.carries_key
}

verdicts contains {
	"verdict": "quarantine",
	"rule": "table_renamed",
	"reason": sprintf("the table is now called %s: name it so in its file, which is called after it, or take the name back", [input.change.table_after]),
} if {
	input.change.kind == "table_renamed"
}

verdicts contains {
	"verdict": "quarantine",
	"rule": "table_dropped",
	"reason": "the table is gone: the lake keeps what it has, and the file may go once nobody misses the table",
} if {
	input.change.kind == "table_dropped"
}

verdicts contains {
	"verdict": "quarantine",
	"rule": "table_replaced",
	"reason": "the table was dropped and made anew: its rows went without a trace in the log; read it anew",
	"reread": true,
} if {
	input.change.kind == "table_replaced"
}

verdicts contains {
	"verdict": "evolve",
	"rule": "partition_attached",
	"reason": "rows that come with a partition are read by key",
} if {
	input.change.kind == "partition_attached"
}

verdicts contains {
	"verdict": "evolve",
	"rule": "partition_detached",
	"reason": "rows that go with a partition are found by a comparison and removed",
	"warnings": [sprintf("the rows of partition %s leave silver", [input.change.partition])],
} if {
	input.change.kind == "partition_detached"
}
