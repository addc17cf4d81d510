// Package reconcile proves that the lake shows what the source holds: it compares
// a table row by row at one moment while writes go on, and checks that bronze,
// current and history agree with each other.
//
// It owns the comparison and how the two sides are brought to one moment. The
// source is read in one transaction and compared as text, the text the server
// prints, so that an error in decoding cannot hide itself; personal columns are
// compared after the transform that the lake has, and never shown in clear. It
// changes nothing, at the source or in the lake. How the lake is read is lake's;
// what changes mean is fold's.
//
// # One moment
//
// A transaction at the source has a snapshot: it sees some transactions and not
// others. Once the lake holds everything up to the end of the log at that time,
// bronze says which keys were changed by transactions that the snapshot does not
// see. Those keys are left out, and looked at again in the next round; all others
// must be equal in every column.
package reconcile
