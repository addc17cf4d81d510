package demo

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestThePaceIsTheRateTripledNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rate = 200
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		p := newPacer()
		go p.run(ctx, rate, rand.New(rand.NewPCG(1, 2)))
		start := time.Now()
		perSecond := make([]int, 121)
		for p.turn(ctx) == nil {
			p.pay(5)
			perSecond[int(time.Since(start).Seconds())] += 5
		}
		calm, busy, total := 0, 0, 0
		for _, n := range perSecond[1:120] {
			total += n
			switch {
			case n >= rate-10 && n <= rate+10:
				calm++
			case n >= burstFactor*rate-10 && n <= burstFactor*rate+10:
				busy++
			}
		}
		require.Greater(t, calm, 90, "%v", perSecond)
		require.GreaterOrEqual(t, busy, 3, "%v", perSecond)
		require.Greater(t, total, 119*rate)
		require.Less(t, total, 119*rate*3/2)
	})
}

func TestAStoppedPacerLetsNobodyWait(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, newPacer().turn(ctx), context.Canceled)
}
