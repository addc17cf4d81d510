package workload

import "math"

// random is splitmix64, so that the workload does not change with a release of Go.
type random struct{ state uint64 }

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// below returns a number from 0 to n-1.
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// unit returns a number in [0, 1).
func (r *random) unit() float64 { return float64(r.next()>>11) / (1 << 53) }

// exponential has the mean 1.
func (r *random) exponential() float64 { return -math.Log(1 - r.unit()) }

func (r *random) pick(from []string) string { return from[r.below(len(from))] }
