// Package park keeps what comes for a table that cannot go on, as it came, sealed, in
// order, until it is handed back.
//
// It owns the form of a sealed run, the key of a quarantine, and the order of steps: a
// file is durable before it is noted, and only what is noted counts (I9). It promises
// that a run opens only under its quarantine's key, as what it was sealed as: of that
// source, table, quarantine and number; that what is missing, cut, changed or in another
// order is an error with a code and never a guess; and that nothing of a run or a key
// shows in a message. What is in a run is its source's; where files lie is the Store's;
// which files count, and when the key is destroyed, is the Index's.
//
// Words: a run is a stretch of a table's changes; a lot is where the runs of one
// quarantine are kept.
package park
