# Which names of columns look like personal data. An organisation adds names and takes
# some out in its package organisation.settings (pii_names, pii_exempt).
package lakeweir.pii

import data.organisation.settings

# categories are those that a column's name belongs to.
#
# A name is cut into words (customerEmail, customer_email: customer, email), and one to
# four words in a row, written together, are looked up. What stands before such words
# does not matter. What stands behind them does: an address_id or a phone_verified_at
# is about an address or a phone without being one.
categories(column) := {category |
	some words in endings(column)
	some category in of_words(words) | of_last(words)
	not exempt(column)
}

# endings are the lists of words that the name ends with once words behind it that
# mean nothing here (numbers, copies) are taken away.
endings(column) := {array.slice(all, 0, n) |
	all := words_of(column)
	some n, _ in array.concat(all, [""])
	n > 0
	every word in array.slice(all, n, count(all)) {
		meaningless(word)
	}
}

of_words(words) := {category |
	n := count(words)
	some length in [1, 2, 3, 4]
	length <= n
	some category in known[concat("", array.slice(words, n - length, n))]
}

# A long name may end a word that nobody has cut: customeremail, homephonenumber.
of_last(words) := {category |
	last := words[count(words) - 1]
	last != "voicemail"
	some ending, category in {
		"email": "email", "emailaddress": "email", "phonenumber": "phone", "mobilenumber": "phone", "telephone": "phone", "birthdate": "birth", "birthday": "birth", "dateofbirth": "birth",
		"firstname": "name", "lastname": "name", "fullname": "name", "surname": "name", "cardnumber": "bank", "ipaddress": "online", "password": "credential",
	}
	endswith(last, ending)
}

meaningless(word) if regex.match(`^[0-9]+$`, word)

meaningless(word) if word in {
	"old", "new", "current", "previous", "prev", "primary", "secondary", "main", "alt", "alternative", "backup", "raw", "clean", "norm", "normalized", "normalised",
	"hash", "hashed", "md", "sha", "enc", "encrypted", "lower", "upper", "text", "txt", "str", "string", "value", "val", "data", "info", "details", "json",
	"line", "home", "work", "private", "business", "office", "full", "plain", "tmp", "copy", "bak",
}

# words_of cuts a name: at what is no letter or digit, between a small and a capital
# letter, and between letters and digits. The words are in lower case.
words_of(column) := [lower(word) |
	apart := regex.replace(column, `(\p{Ll})(\p{Lu})`, "$1 $2")
	digits := regex.replace(apart, `(\p{L})([0-9])`, "$1 $2")
	some word in regex.split(`[^\p{L}0-9]+`, digits)
	word != ""
]

known[name] contains category if {
	some category, names_of in names
	some name in names_of
}

known[name] contains "organisation" if {
	some written in settings.pii_names
	name := concat("", words_of(written))
}

# An exemption names a name (ip), or a column (hosts.ip, shop/public.hosts.ip).
exempt(column) if {
	some written in settings.pii_exempt
	lower(written) == lower(column)
}

exempt(column) if {
	some written in settings.pii_exempt
	some table in {input.table.name, input.table.id}
	lower(written) == lower(sprintf("%s.%s", [table, column]))
}

# names are written in lower case and without what parts words: date_of_birth is
# dateofbirth. They are what people call such columns in English, German, French,
# Spanish, Italian, Dutch and Portuguese.
names := {
	"phone": {
		"phone", "phones", "phoneno", "phonenr", "phonenum", "phonenumber", "phonenumbers", "telephone", "telephoneno", "telephonenumber", "tel", "telno", "telnr",
		"mobile", "mobileno", "mobilenr", "mobilenumber", "mobilephone", "cellphone", "cellno", "cellnumber", "landline", "fax", "faxno", "faxnumber", "msisdn", "whatsapp",
		"telefon", "telefonnummer", "handy", "handynummer", "mobil", "mobilnummer", "rufnummer", "telefono", "teléfono", "telefone", "téléphone", "celular", "cellulare", "telefoon", "telefoonnummer", "mobiel",
	},
	"email": {
		"email", "emails", "emailaddr", "emailaddress", "emailaddresses", "emailadress", "emailid", "mail", "mailaddress", "mailaddr",
		"emailadresse", "mailadresse", "courriel", "correo", "correoelectronico", "emailadres",
	},
	"name": {
		"firstname", "lastname", "fullname", "middlename", "surname", "familyname", "givenname", "forename", "maidenname", "birthname", "realname", "nickname",
		"personname", "customername", "contactname", "cardholder", "cardholdername", "accountholder", "recipientname", "fname", "lname",
		"vorname", "nachname", "familienname", "prenom", "prénom", "nomdefamille", "apellido", "apellidos", "cognome", "voornaam", "achternaam", "sobrenome",
	},
	"address": {
		"address", "addresses", "addr", "addressline", "streetaddress", "street", "streetname", "streetno", "streetnumber", "housenumber", "houseno", "postaladdress", "shippingaddress", "billingaddress", "homeaddress",
		"deliveryaddress", "mailingaddress", "residence", "postalcode", "postcode", "zip", "zipcode", "pobox", "apartment",
		"adresse", "anschrift", "strasse", "straße", "hausnummer", "plz", "postleitzahl", "codepostal", "direccion", "dirección", "codigopostal", "indirizzo", "adres", "straat", "huisnummer", "endereco", "endereço", "cep",
		"latitude", "longitude", "geolocation", "gpsposition", "gpscoordinates",
	},
	"birth": {
		"birth", "birthday", "birthdate", "birthyear", "birthplace", "dateofbirth", "placeofbirth", "yearofbirth", "dob", "bday",
		"geburtsdatum", "geburtstag", "geburtsort", "geburtsjahr", "naissance", "datedenaissance", "datenaissance", "fechanacimiento", "fechadenacimiento", "nacimiento", "datadinascita", "datanascita", "geboortedatum", "datanascimento", "datadenascimento",
	},
	"national_id": {
		"ssn", "socialsecurity", "socialsecurityno", "socialsecuritynumber", "nin", "nino", "nationalid", "nationalidentifier", "nationalinsurancenumber", "nationalidnumber", "personalid", "personalnumber", "personnummer",
		"taxid", "taxnumber", "taxpayerid", "tin", "itin", "passport", "passportno", "passportnumber", "passportid", "idcard", "idcardno", "idcardnumber", "identitycard", "identitynumber",
		"driverlicense", "driverslicense", "drivinglicence", "drivinglicense", "healthinsurancenumber", "medicarenumber", "nhsnumber",
		"steuernummer", "steueridnummer", "steuerid", "sozialversicherungsnummer", "svnr", "ausweisnummer", "personalausweis", "dni", "nif", "curp", "cpf", "bsn", "codicefiscale", "insee", "pesel",
	},
	"bank": {
		"iban", "ibans", "ibanno", "ibannumber", "bankaccount", "bankaccountno", "bankaccountnumber", "accountnumber", "accountno", "routingnumber", "sortcode", "kontonummer", "kontonr",
		"cardnumber", "cardno", "creditcard", "creditcardno", "creditcardnumber", "debitcard", "debitcardnumber", "pan", "cvv", "cvc", "cardcvv", "kreditkarte", "kreditkartennummer",
	},
	"special": {
		"gender", "sex", "religion", "ethnicity", "ethnicorigin", "nationality", "citizenship", "maritalstatus", "disability", "diagnosis", "bloodtype", "politicalopinion", "sexualorientation",
		"geschlecht", "staatsangehörigkeit", "staatsangehoerigkeit", "familienstand",
	},
	"online": {"ip", "ipaddr", "ipaddress", "ipv4", "ipv6", "clientip", "remoteip", "userip", "remoteaddr", "macaddress", "macaddr", "useragent", "imei", "imsi", "advertisingid", "idfa"},
	"credential": {
		"password", "passwords", "passwd", "passphrase", "pwd", "passwort", "kennwort", "motdepasse", "contrasena", "contraseña", "wachtwoord", "secret", "secretkey", "apikey", "apisecret", "apitoken",
		"accesstoken", "refreshtoken", "authtoken", "privatekey", "securityanswer", "pin", "pincode", "otp", "otpsecret", "totpsecret",
	},
}
