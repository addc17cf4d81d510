// Package torture is a set of Postgres tables that hold every built-in type with
// NULL, the least, the greatest and the odd values of each, as a scalar, as an
// array, as a domain and as a domain over the array.
//
// It says what each column is in the lake, as docs/reference/types.md documents
// it, in words of its own: nothing here uses Lakeweir's code, so a mistake there
// is not repeated here. What a row must look like in the lake is computed by the
// source itself, with the SQL of Normal and Unfit.
package torture
