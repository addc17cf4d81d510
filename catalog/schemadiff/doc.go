// Package schemadiff tells what changed between two definitions of a table, as the
// typed changes that policies judge.
//
// It is pure. Columns are the same when they have the same attribute number, so that a
// rename is told from a column dropped and another added, and two columns that swap
// names from two that swap types; where the capture gives no numbers they are the same
// when they have the same name. A change of type is a widening only when the lake's
// column can follow, by staying as it is or by a promotion that Iceberg makes by field
// id (int → long, float → double, decimal of more digits at the same scale); a source
// type that widens to one that the lake cannot reach counts as retyped.
package schemadiff
