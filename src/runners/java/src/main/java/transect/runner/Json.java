package transect.runner;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;

/** JSON as the standard has it; gson alone would also take what is none. */
final class Json {
  private static final Gson WRITER =
      new GsonBuilder().disableHtmlEscaping().serializeNulls().create();
  private static final int SHOWN = 200;

  private Json() {}

  /** Read one value. Throws BadInput naming the file. */
  static JsonElement read(Path path) {
    try (JsonReader reader = new JsonReader(new StringReader(Files.readString(path)))) {
      reader.setStrictness(Strictness.STRICT);
      JsonElement value = JsonParser.parseReader(reader);
      if (reader.peek() != JsonToken.END_DOCUMENT) {
        throw new JsonParseException("more than one value");
      }
      return value;
    } catch (IOException | JsonParseException | StackOverflowError error) {
      throw new BadInput(path + ": expected a JSON file: " + error, error);
    }
  }

  static String text(Object value) {
    return WRITER.toJson(value);
  }

  static boolean isText(JsonElement value) {
    return value instanceof JsonPrimitive primitive && primitive.isString();
  }

  /** Tell whether it is a number >= 0 without a fraction that Java's `long` holds. */
  static boolean isWhole(JsonElement value) {
    return value instanceof JsonPrimitive primitive
        && primitive.isNumber()
        && primitive.getAsString().matches("[0-9]{1,18}");
  }

  /** Show a value in a message, which stays one line. */
  static String shown(JsonElement value) {
    String text = String.valueOf(value);
    return text.length() <= SHOWN ? text : text.substring(0, SHOWN) + "…";
  }
}
