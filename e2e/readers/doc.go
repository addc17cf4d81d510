// Package readers reads tables of a lake by engines that are not Lakeweir's:
// PyIceberg and Spark. It installs them, once, from package registries into the
// repository's .cache folder, and reaches the registries as pip and Maven are set
// up on the machine.
//
// Every value comes back in the form that normal.py has for its lake type, so that
// both can be compared with what a source says. It knows nothing of Lakeweir's
// code.
package readers
