// Command memory measures how much memory a worker takes for what is large: a
// transaction of a million rows, a value of 60 MB, a bulk load that is rolled back,
// a snapshot of a million rows, a TRUNCATE of them, and very wide tables.
//
// Each scenario has a Postgres, a registry and a lake of its own, and the real
// program as a process of its own: "lakeweir run". What counts is the most memory
// that the process had resident (VmHWM of /proc/PID/status), reset before each step.
// Afterwards the rows are checked, and "lakeweir reconcile" must find source and lake
// equal; what that takes is told too. It fails when a worker takes more than -limit,
// and writes its figures to -out. Linux only.
package main
