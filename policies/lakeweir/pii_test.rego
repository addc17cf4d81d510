package lakeweir.pii_test

import data.lakeweir.pii

test_words if {
	pii.words_of("customer_email") == ["customer", "email"]
	pii.words_of("customerEmail2") == ["customer", "email", "2"]
	pii.words_of("  Größe (cm)") == ["größe", "cm"]
	pii.words_of("") == []
}

test_categories if {
	pii.categories("phone") == {"phone"}
	pii.categories("customer_phone_number_1") == {"phone"}
	pii.categories("order_id") == set()
	pii.categories("") == set()
}

test_compounds if {
	pii.categories("customeremail") == {"email"}
	pii.categories("homephonenumber_old") == {"phone"}
	pii.categories("voicemail") == set()
	pii.categories("ipv4") == {"online"}
}

test_organisation_adds_names if {
	pii.categories("kundennummer") == set()
	pii.categories("alte_Kunden_Nummer") == {"organisation"} with data.organisation.settings as {"pii_names": {"kundennummer"}}
}

test_organisation_exempts_a_name_everywhere if {
	pii.categories("ip") == set() with data.organisation.settings as {"pii_exempt": {"IP"}}
}

test_organisation_exempts_a_column_of_a_table if {
	settings := {"pii_exempt": {"shop/public.hosts.ip"}}
	hosts := {"table": {"id": "shop/public.hosts", "name": "hosts"}}
	visits := {"table": {"id": "shop/public.visits", "name": "visits"}}
	pii.categories("ip") == set() with data.organisation.settings as settings with input as hosts
	pii.categories("ip") == {"online"} with data.organisation.settings as settings with input as visits
}
