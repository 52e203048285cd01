// docs/configuration.md says of every setting what the program itself says of it.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "common/config/broker_config.h"
#include "common/config/controller_config.h"
#include "common/config/setting.h"
#include "common/config/topic_config.h"

namespace conclave {
namespace {

std::string Table(const SettingsSchema& schema) {
  std::string table = "| key | allowed | default | |\n| --- | --- | --- | --- |\n";
  for (const SettingDefinition& d : schema.definitions()) {
    const std::string value = d.required          ? "(required)"
                              : d.default_value   ? "`" + *d.default_value + "`"
                                                  : d.default_rule;
    table += "| `" + d.key + "` | " + AllowedValues(d) + " | " + value + " | " + d.documentation +
             " |\n";
  }
  return table;
}

TEST(ConfigurationDocTest, EverySettingIsDocumentedAsItIs) {
  std::ifstream file("docs/configuration.md");
  std::stringstream text;
  text << file.rdbuf();
  ASSERT_FALSE(text.str().empty());
  for (const SettingsSchema* schema : {&ControllerSettings(), &BrokerSettings(), &TopicSettings()}) {
    const std::string table = Table(*schema);
    EXPECT_NE(text.str().find(table), std::string::npos)
        << "docs/configuration.md lacks this table of the settings of a " << schema->scope()
        << ":\n\n"
        << table;
  }
}

}  // namespace
}  // namespace conclave
