// Package columnar turns row images into Arrow columns and Arrow columns into row
// images, type by type and column by column.
//
// Both ways are exact: what is read back equals what was written, save that every
// cell without a value comes back as NULL. It knows nothing of files, tables or
// Iceberg; lake decides which columns there are and gives them their field ids.
package columnar
