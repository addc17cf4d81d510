// Package keyindex says where the live row of each key lies in a layer.
//
// It is a cache and nothing more: whoever holds one fills it from the table, keeps
// it in step with every commit, and throws it away when the table is not what the
// index was filled from. It promises no persistence and decides nothing; lake
// owns that. Memory is the first form; another may take its place behind Index.
package keyindex
