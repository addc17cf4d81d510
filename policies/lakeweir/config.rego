# What lakeweir validate asks of a table's file beyond its form. An organisation sets
# the bounds in its package organisation.settings, adds findings of its own in
# organisation.config, and waives ours there.
package lakeweir.config

import data.lakeweir.pii
import data.organisation.settings

findings contains {
	"rule": "owner_named",
	"field": "owner",
	"message": sprintf("%q is nobody who could be asked", [input.table.owner]),
	"hint": "name the team or person who is asked when the table breaks",
} if {
	lower(trim(input.table.owner, " -_.?")) in {"", "todo", "tbd", "fixme", "unknown", "nobody", "none", "me", "owner", "team", "someone", "anyone", "everyone", "xxx", "n/a", "na"}
}

findings contains {
	"rule": "owner_pattern",
	"field": "owner",
	"message": sprintf("%q is no owner that the organisation's policy knows (%s)", [input.table.owner, settings.owner_pattern]),
	"hint": "write the owner as the policy has it",
} if {
	not regex.match(settings.owner_pattern, input.table.owner)
}

findings contains {
	"rule": "table_pattern",
	"field": "table",
	"message": sprintf("the table's name %q is not as the organisation's policy wants it (%s)", [input.table.name, settings.table_pattern]),
	"hint": "leave the table out, or have it waived",
} if {
	not regex.match(settings.table_pattern, input.table.name)
}

findings contains {
	"rule": "tier_allowed",
	"field": "freshness_tier",
	"message": sprintf("the tier %s is not among those that the organisation's policy allows", [input.table.freshness_tier]),
	"hint": sprintf("use one of %s", [concat(", ", settings.tiers)]),
} if {
	not input.table.freshness_tier in settings.tiers
}

# Keys and tracked columns are kept for good, in every version: personal data among
# them is never in clear by oversight.
findings contains {
	"rule": "pii_in_clear",
	"field": sprintf("%s[%d]", [key, i]),
	"message": sprintf("%q looks like personal data (%s) by its name, and would be kept in clear in every version", [column, concat(", ", categories)]),
	"hint": "name it under pii: tokenize keeps it comparable; or have it exempted (pii_exempt)",
} if {
	some key in {"primary_key", "track_history_columns"}
	some i, column in input.table[key]
	not input.table.pii[column]
	categories := pii.categories(column)
	count(categories) > 0
}
