// Package monitor judges what the registry knows: how fresh each table is, what is
// wrong with it, and how near a source is to trouble.
//
// It is pure: facts and their time in, verdicts out, and no clock of its own. It is
// honest in one direction: what nobody has reported is unknown, never fresh, and a
// table that a worker does not answer for only grows older. Showing the verdicts is
// dashboard's and the commands'.
package monitor
