// Package verify compares Iceberg tables with what the reference workload must end
// with. PyIceberg reads them, which shares no code with what wrote them, and pyarrow
// compares them: every column of every row, and how often a row is there.
package verify
