package catalog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

func TestTopicsAreNamedAsDebeziumNamesThem(t *testing.T) {
	t.Parallel()
	c := &catalog.Connector{TopicPrefix: "shop"}
	for table, want := range map[catalog.TableName]string{
		{Schema: "public", Name: "orders"}:                 "shop.public.orders",
		{Schema: "My Schema", Name: `Order"Items`}:         "shop.My_Schema.Order_Items",
		{Schema: "a.b", Name: "c-d_e"}:                     "shop.a.b.c-d_e",
		{Schema: "öffentlich", Name: "\U0001F4E6"}:         "shop._ffentlich.__",
		{Schema: "s", Name: strings.Repeat("x", 63) + "/"}: "shop.s." + strings.Repeat("x", 63) + "_",
	} {
		require.Equal(t, want, c.Topic(table))
	}
	require.Len(t, (&catalog.Connector{TopicPrefix: strings.Repeat("p", 250)}).Topic(catalog.TableName{Schema: "s", Name: "t"}), 249)
}
