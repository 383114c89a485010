"""Which keys hold secrets."""

import pytest

from walstream.config.secret_keys import is_secret_key


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "PWD",
        "sslpassword",
        "sasl.password",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
        "sasl.jaas.config",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.azure.account.key.me.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.box.me.blob.core.windows.net",
        "spark.hadoop.fs.azure.sas.fixed.token.box.me.dfs.core.windows.net",
        "spark.hadoop.fs.azure.account.oauth2.client.secret.me.dfs.core.windows.net",
        "spark.hadoop.fs.s3a.session.token",
        "spark.hadoop.fs.s3a.server-side-encryption.key",
        "spark.hadoop.fs.s3a.encryption.key",
        "spark.hadoop.fs.s3a.bucket.mine.access.key",
        "spark.hadoop.fs.gs.auth.service.account.private.key",
        "spark.hadoop.fs.oss.accessKeySecret",
        "spark.authenticate.secret",
        "spark.ssl.keyPassword",
        "oauth_client_secret",
        "scram_client_key",
        "api_key",
    ],
)
def test_secrets_are_known_by_their_keys(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize(
    "key",
    [
        "key",
        "partition_key",
        "primary_key",
        "user",
        "sasl.username",
        "sasl.mechanism",
        "bootstrap.servers",
        "ssl.key.location",
        "ssl.certificate.pem",
        "sasl.oauthbearer.token.endpoint.url",
        "spark.io.encryption.keySizeBits",
        "spark.io.encryption.enabled",
        "spark.hadoop.fs.azure.account.auth.type",
        "spark.hadoop.fs.azure.account.keyprovider.me.blob.core.windows.net",
        "spark.hadoop.fs.gs.auth.service.account.email",
        "spark.hadoop.fs.gs.auth.service.account.json.keyfile",
        "spark.network.crypto.keyLength",
        "passfile",
        "sslrootcert",
    ],
)
def test_other_keys_are_shown(key: str) -> None:
    assert not is_secret_key(key)
